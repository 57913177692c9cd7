import type ipaddr from "ipaddr.js";
import { parseAddress } from "../model/allowed-target.ts";

/** What users know these ranges as; the rest of them are just not public. */
const KINDS: Readonly<Record<string, string>> = {
  loopback: "a loopback address",
  unspecified: "an address of this machine",
  private: "a private address",
  uniqueLocal: "a private address",
  linkLocal: "a link-local address",
  multicast: "a multicast address",
  broadcast: "a broadcast address",
  carrierGradeNat: "an address shared behind a carrier's NAT",
};

/** What an address is instead of a public one; null for a public one. */
export function notPublic(address: string): string | null {
  const parsed = parseAddress(address);
  if (parsed === null) return "not an address";
  const range = parsed.range();
  if (range === "unicast" && isAssigned(parsed)) return null;
  return KINDS[range] ?? "not a public address";
}

/**
 * Of IPv6 only 2000::/3 is given out for the internet. Everything else is special or not assigned, such as ::127.0.0.1,
 * the old way to write an IPv4 address, which ipaddr.js takes for a common one.
 */
function isAssigned(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.kind() === "ipv4") return true;
  const [first = 0] = address.toByteArray();
  return first >> 5 === 0b001;
}

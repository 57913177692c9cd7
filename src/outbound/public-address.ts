import ipaddr from "ipaddr.js";
import { parseAddress } from "../model/outbound-target.ts";

/** Names of ranges for users. Other ranges are only called not public. */
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

/** Public addresses at which a cloud serves only its own machines, such as metadata services. */
const CLOUD_SERVICES = [
  // Azure: host agent, DNS, health probes.
  "168.63.129.16/32",
  // Equinix Metal: metadata.
  "192.80.8.124/32",
  // IBM Cloud: service endpoints.
  "161.26.0.0/16",
  "166.8.0.0/14",
].map((network) => ipaddr.IPv4.parseCIDR(network));

/** The kind of an address that is not public; null: it is public. */
export function notPublic(address: string): string | null {
  const parsed = parseAddress(address);
  if (parsed === null) return "not an address";
  const range = parsed.range();
  if (isCloudService(parsed)) return "an address of a cloud's own services";
  if (range === "unicast" && isAssigned(parsed)) return null;
  return KINDS[range] ?? "not a public address";
}

/**
 * Of IPv6 only 2000::/3 is assigned for the internet. Everything else is special or not assigned, such as ::127.0.0.1, the old
 * form of an IPv4 address, which ipaddr.js classifies as unicast.
 */
function isAssigned(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.kind() === "ipv4") return true;
  const [first = 0] = address.toByteArray();
  return first >> 5 === 0b001;
}

function isCloudService(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return CLOUD_SERVICES.some((network) => address.kind() === "ipv4" && address.match(network));
}

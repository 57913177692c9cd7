import ipaddr from "ipaddr.js";

/** Hosts or addresses in `outbound.allow` or `outbound.deny`. */
export type OutboundTarget =
  /** This host, whatever address it has. */
  | { readonly kind: "host"; readonly name: string }
  /** Every host below this one. */
  | { readonly kind: "below"; readonly name: string }
  /** These addresses, whatever name they are reached by. */
  | { readonly kind: "network"; readonly network: Network };

export type Network = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number];

/** The valid forms of an entry, as the rest of "`outbound.allow.0` must be …". */
export const OUTBOUND_TARGET_FORMS =
  'a host ("hooks.internal", "*.example.internal"), an address ("10.0.0.5") or a network ("10.0.0.0/8"), ' +
  "without scheme, port and path";

/** Reads one entry of `outbound.allow` or `outbound.deny`; null when it is none of `OUTBOUND_TARGET_FORMS`. */
export function parseOutboundTarget(entry: string): OutboundTarget | null {
  if (entry.includes("/")) return parseNetwork(entry);
  if (entry.startsWith("*.")) {
    const name = parseHost(entry.slice(2));
    return name === null || parseAddress(name) !== null ? null : { kind: "below", name };
  }
  const name = ipaddr.IPv6.isValid(entry) ? entry : parseHost(entry);
  if (name === null) return null;
  const address = parseAddress(name);
  if (address === null) return { kind: "host", name };
  return { kind: "network", network: [address, address.kind() === "ipv4" ? 32 : 128] };
}

function parseNetwork(entry: string): OutboundTarget | null {
  if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(entry) && !ipaddr.IPv6.isValidCIDR(entry)) return null;
  const [address, prefixLength] = ipaddr.parseCIDR(entry);
  // Such an address is converted to the IPv4 address in it, so that the network would never match.
  if (address.range() === "ipv4Mapped") return null;
  return { kind: "network", network: [address, prefixLength] };
}

/** A host in the form of URLs: lower case, punycode, an address in its usual form. Null: it is more than a host. */
function parseHost(text: string): string | null {
  const url = /[*\s]/.test(text) ? null : URL.parse(`http://${text}`);
  if (url === null || url.href !== `http://${url.hostname}/`) return null;
  // The default port would not show in the parsed URL.
  if (/:\d*$/.test(text) && !text.endsWith("]")) return null;
  return plainHost(url.hostname);
}

/** The host of a URL without brackets and without the dot of a fully qualified name. */
export function plainHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "");
}

/** An address, or the IPv4 address inside an IPv6 one; null: the text is no address. */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // ipaddr.js also accepts "127.1" and "0177.0.0.1". URLs and resolvers write addresses in full, so that these are names.
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text) ? ipaddr.process(text) : null;
}

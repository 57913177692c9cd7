import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";

/**
 * The address of the caller: that of the connection, or the one in `X-Forwarded-For` if `server.trustProxy` trusts the proxies
 * that set it. Entries that are not addresses are ignored.
 */
export function addressOf({ ip, socket }: Pick<FastifyRequest, "ip" | "socket">): string {
  const said = plainAddress(ip);
  return isIP(said) === 0 ? plainAddress(socket.remoteAddress ?? "") : said;
}

/** Without the zone. An IPv4 address mapped to IPv6 becomes plain IPv4. */
function plainAddress(address: string): string {
  return address.replace(/%.*$/, "").replace(/^::ffff:(?=[\d.]+$)/i, "");
}

import { isIP } from "node:net";
import type { FastifyRequest } from "fastify";

/**
 * Where a request came from: the other end of the connection, or what the proxies that `server.trustProxy` names say in
 * `X-Forwarded-For`. What is no address there is not believed.
 */
export function addressOf({ ip, socket }: Pick<FastifyRequest, "ip" | "socket">): string {
  const said = plainAddress(ip);
  return isIP(said) === 0 ? plainAddress(socket.remoteAddress ?? "") : said;
}

/** Without a zone, and IPv4 as itself. */
function plainAddress(address: string): string {
  return address.replace(/%.*$/, "").replace(/^::ffff:(?=[\d.]+$)/i, "");
}

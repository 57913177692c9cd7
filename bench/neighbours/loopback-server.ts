import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * The attacker's receivers and agents have another address than the victim's, as they would have another host: what the
 * node learns about one must not count for the other. Linux has all of 127.0.0.0/8.
 */
export const VICTIM_HOST = "127.0.0.1";
export const ATTACKER_HOST = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";

/** Serves until the process ends. Returns its URL. */
export async function serveOn(host: string, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, host);
  await once(server, "listening");
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

import type { FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { shown } from "../../model/field-checks.ts";

const LOCAL = "127\\.0\\.0\\.1|localhost|\\[::1\\]";
const LOCAL_HOST = new RegExp(`^(?:${LOCAL})(?::\\d{1,5})?$`, "i");
const LOCAL_ORIGIN = new RegExp(`^https?://(?:${LOCAL})(?::\\d{1,5})?$`, "i");

/**
 * Keeps web pages out. Without keys whoever reaches the port may do everything, and a browser on this machine reaches
 * it: a page can point a name of its own at 127.0.0.1 (DNS rebinding), which its `Host` gives away, or send a request
 * whose answer it may not read, which its `Origin` gives away.
 */
export function allowLocalOnly({ headers }: FastifyRequest): void {
  const { host, origin } = headers;
  if (host === undefined || !LOCAL_HOST.test(host)) {
    throw new RotaError(
      "forbidden",
      "without API keys Rota answers this machine only: the `Host` of a request must be 127.0.0.1, localhost or [::1], " +
        `and this one ${host ? `is ${shown(host)}` : "has none"}`,
    );
  }
  if (origin !== undefined && !LOCAL_ORIGIN.test(origin)) {
    throw new RotaError(
      "forbidden",
      `without API keys Rota answers web pages of this machine only, and this request comes from ${shown(origin)}`,
    );
  }
}

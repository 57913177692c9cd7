import type { FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { preview } from "../../model/input/field-checks.ts";

const LOCAL = "127\\.0\\.0\\.1|localhost|\\[::1\\]";
const LOCAL_HOST = new RegExp(`^(?:${LOCAL})(?::\\d{1,5})?$`, "i");
const LOCAL_ORIGIN = new RegExp(`^https?://(?:${LOCAL})(?::\\d{1,5})?$`, "i");
/** What browsers send with a request that a foreign page causes, such as an image or a link. */
const FOREIGN_SITES = ["cross-site", "same-site"];

/**
 * Keeps web pages out. Without keys, any program that reaches the port may do everything, and so may a browser on this machine. A
 * page can point a name of its own at 127.0.0.1 (DNS rebinding); the `Host` reveals that. Or it sends a request whose response
 * it may not read; the `Origin` reveals that or, where a browser sends none, `Sec-Fetch-Site`.
 *
 * A link to the dashboard may be anywhere, such as in a mail or a chat. The page that it opens cannot affect the page that it
 * came from, nor the other way round.
 */
export function allowLocalOnly(request: FastifyRequest): void {
  const { headers } = request;
  const { host, origin, "sec-fetch-site": site } = headers;
  if (host === undefined || !LOCAL_HOST.test(host)) {
    throw new RotaError(
      "forbidden",
      "this server has no API keys, so it responds only to this machine: the `Host` header must be 127.0.0.1, localhost or [::1], " +
        `${host ? `not ${preview(host)}` : "and it is missing"}`,
    );
  }
  if (origin !== undefined && !LOCAL_ORIGIN.test(origin)) {
    throw new RotaError(
      "forbidden",
      `this server has no API keys, so it responds only to web pages of this machine, not of ${preview(origin)}: create an API key, ` +
        "and list the origin in `server.cors.origins`",
    );
  }
  if (origin !== undefined && !isOwnOrigin(request) && !request.isListedOrigin && needsNoPreflight(request)) {
    throw new RotaError(
      "forbidden",
      `this server has no API keys, so a page of ${preview(origin)} may send only JSON: set \`content-type: application/json\`, list ` +
        "the origin in `server.cors.origins`, or create an API key",
    );
  }
  if (isLinkToDashboard(request)) return;
  if (origin === undefined && typeof site === "string" && FOREIGN_SITES.includes(site.toLowerCase())) {
    throw new RotaError(
      "forbidden",
      "this server has no API keys, so it responds only to web pages of this machine, and a page of another site caused this " +
        `request (\`Sec-Fetch-Site: ${preview(site)}\`)`,
    );
  }
}

/** Whether a page of this server sent the request, by its `Origin` or, behind a proxy, by `Sec-Fetch-Site`. */
function isOwnOrigin({ headers: { host, origin, "sec-fetch-site": site } }: FastifyRequest): boolean {
  return site === "same-origin" || URL.parse(origin ?? "")?.host === host?.toLowerCase();
}

/** Whether a browser sends this change for any page without a CORS preflight. For JSON it sends a preflight first. */
function needsNoPreflight({ method, headers }: FastifyRequest): boolean {
  return method === "POST" && !/^application\/json\b/i.test(headers["content-type"] ?? "");
}

/** Only a navigation to `/` or below `/ui/`: never the API, and nothing that a page embeds. */
function isLinkToDashboard({ method, url, headers }: FastifyRequest): boolean {
  return (
    method === "GET" && headers["sec-fetch-mode"] === "navigate" && /^\/(?:ui(?:\/[^?]*)?)?(?:\?|$)/.test(url)
  );
}

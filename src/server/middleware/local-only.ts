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
      "without API keys Rota answers this machine only: the `Host` of a request must be 127.0.0.1, localhost or [::1], " +
        `and this one ${host ? `is ${preview(host)}` : "has none"}`,
    );
  }
  if (origin !== undefined && !LOCAL_ORIGIN.test(origin)) {
    throw new RotaError(
      "forbidden",
      `without API keys Rota answers web pages of this machine only, and this request comes from ${preview(origin)}`,
    );
  }
  if (origin !== undefined && !isOwnOrigin(request) && needsNoPreflight(request)) {
    throw new RotaError(
      "forbidden",
      `without API keys only Rota's own pages may send a request like this, and it comes from ${preview(origin)}: send it with ` +
        "`content-type: application/json`, or make an API key",
    );
  }
  if (isLinkToDashboard(request)) return;
  if (origin === undefined && typeof site === "string" && FOREIGN_SITES.includes(site.toLowerCase())) {
    throw new RotaError(
      "forbidden",
      "without API keys Rota answers web pages of this machine only, and the browser that sends this request does so for another " +
        `(\`Sec-Fetch-Site: ${preview(site)}\`)`,
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

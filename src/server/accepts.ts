const JSON_TYPE = "application/json";

/** Whether the caller prefers events to JSON. */
export function prefersStream(accept: string | undefined): boolean {
  return prefers("text/event-stream", accept);
}

/** Whether the caller prefers plain text to JSON. */
export function prefersText(accept: string | undefined): boolean {
  return prefers("text/plain", accept);
}

/** Whether the caller is a browser rather than a program. */
export function prefersHtml(accept: string | undefined): boolean {
  return prefers("text/html", accept);
}

/** `wished` must be named: a wildcard, which browsers send, does not count. It wins over JSON by quality, or by order. */
function prefers(wished: string, accept: string | undefined): boolean {
  const named = (accept ?? "").split(",").map(parseRange);
  const wanted = named.filter(({ quality }) => quality > 0);
  const best = wanted
    .filter(({ type }) => type === wished || type === JSON_TYPE)
    // The sort is stable: types of equal quality keep their order.
    .sort((one, other) => other.quality - one.quality)[0];
  return best?.type === wished;
}

/** Parses `text/event-stream;q=0.5`. A quality that is not a number counts as absent. */
function parseRange(range: string): { readonly type: string; readonly quality: number } {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const given = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  const quality = given === undefined || given === "" ? 1 : Number(given);
  return { type, quality: Number.isNaN(quality) ? 1 : quality };
}

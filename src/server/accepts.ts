const JSON_TYPE = "application/json";

/** Whether whoever asks wants events rather than JSON. */
export function prefersStream(accept: string | undefined): boolean {
  return prefers("text/event-stream", accept);
}

/** Whether whoever asks wants a bare text rather than JSON. */
export function prefersText(accept: string | undefined): boolean {
  return prefers("text/plain", accept);
}

/** Whether a person looks at it with a browser, and no program asks. */
export function prefersHtml(accept: string | undefined): boolean {
  return prefers("text/html", accept);
}

/** It must be named, since browsers take anything, and JSON must be wanted less, or as much and named after it. */
function prefers(wished: string, accept: string | undefined): boolean {
  const named = (accept ?? "").split(",").map(parseRange);
  const wanted = named.filter(({ quality }) => quality > 0);
  const best = wanted
    .filter(({ type }) => type === wished || type === JSON_TYPE)
    // What is wanted as much stays in the order it was named.
    .sort((one, other) => other.quality - one.quality)[0];
  return best?.type === wished;
}

/** `text/event-stream;q=0.5`. A quality that is no number counts as not given. */
function parseRange(range: string): { readonly type: string; readonly quality: number } {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const given = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  const quality = given === undefined || given === "" ? 1 : Number(given);
  return { type, quality: Number.isNaN(quality) ? 1 : quality };
}

/** A URL without a slash at its end, so that paths can be appended. */
export function baseOf(url: string): string {
  return new URL(url).href.replace(/\/+$/, "");
}

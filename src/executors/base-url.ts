/** A URL as paths are added to it: without a slash at its end. */
export function baseOf(url: string): string {
  return new URL(url).href.replace(/\/+$/, "");
}

/** Host names have at most 253 characters. A longer one is cut, so that it fits into an index. */
const HOST_LENGTH_MAX = 255;
const HOST = /^https?:\/\/(\[[^\]/?#\\]*\]|[^/?#\\:]*)/i;

/**
 * The host of a callback URL, by which deliveries are counted, whatever the port. It reads only the text, as PostgreSQL does
 * for the column of the same name, so that it is only correct for a URL from `withPlainHost`.
 */
export function callbackHost(url: string): string {
  const host = HOST.exec(url)?.[1] ?? "";
  return host
    .slice(0, HOST_LENGTH_MAX)
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/\.+$/, "");
}

/**
 * The URL with its host in the normal form of the URL standard: `http://0x7f.1/` becomes `http://127.0.0.1/`. A URL whose host
 * already has that form, except for capitals and the dot of a fully qualified name, stays unchanged.
 */
export function withPlainHost(url: URL, text: string): string {
  return callbackHost(text) === callbackHost(url.href) ? text : url.href;
}

/** Names are at most 253 characters long: what is longer leads nowhere, and must fit an index. */
const HOST_LENGTH_MAX = 255;
const HOST = /^https?:\/\/(\[[^\]/?#\\]*\]|[^/?#\\:]*)/i;

/**
 * The host of a callback URL: what its deliveries are counted by, whatever the port. It reads no more than the text, as
 * PostgreSQL does for the column of the same name, so that it is only right for a URL that `withPlainHost` returned.
 */
export function callbackHost(url: string): string {
  const host = HOST.exec(url)?.[1] ?? "";
  return host
    .slice(0, HOST_LENGTH_MAX)
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/\.+$/, "");
}

/**
 * The URL with its host in the form that the URL standard gives it: `http://0x7f.1/` is `http://127.0.0.1/`. One whose host
 * has that form already, but for capitals and the dot of a fully qualified name, stays letter by letter what it was.
 */
export function withPlainHost(url: URL, text: string): string {
  return callbackHost(text) === callbackHost(url.href) ? text : url.href;
}

/** Longer than any URL that a server would accept. */
const URL_LENGTH_MAX = 2_048;

/**
 * What is wrong with the form of a URL that somebody wants to be called at, as the rest of "`callbackUrl` must …"; null
 * when nothing is. The sentence never repeats the URL: it may hold a password.
 */
export function callbackUrlFault(url: string): string | null {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return "be an http or https URL";
  if (parsed.username !== "" || parsed.password !== "") return "have no user or password in it";
  return url.length > URL_LENGTH_MAX ? `have at most ${URL_LENGTH_MAX} characters` : null;
}

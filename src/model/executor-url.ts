/**
 * What is wrong with the URL of an executor, as the rest of "`url` must …"; null when nothing is. The sentence never
 * repeats the URL: whatever is wrong with it, it may hold a password.
 */
export function executorUrlFault(url: unknown): string | null {
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return "be an http or https URL";
  // `fetch` refuses such a URL with an error that shows it, at every attempt, where everybody can read it.
  if (parsed.username !== "" || parsed.password !== "") {
    return "have no user or password in it: write them as an `authorization` header in `headers`";
  }
  return null;
}

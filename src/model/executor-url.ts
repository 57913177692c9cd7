/** Longer than any URL that a server would accept. */
const URL_LENGTH_MAX = 2_048;

/**
 * What is wrong with the URL of an executor, as the rest of "`url` must …"; null: nothing. The sentence never repeats the URL,
 * which may contain a password.
 */
export function executorUrlFault(url: unknown): string | null {
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    return 'be an http or https URL, like "http://127.0.0.1:9100/"';
  // `fetch` refuses such a URL at every attempt, with an error that shows the URL to all readers of the task.
  if (parsed.username !== "" || parsed.password !== "") {
    return "have no user or password in it: write them as an `authorization` header in `headers`";
  }
  return parsed.href.length > URL_LENGTH_MAX ? `have at most ${URL_LENGTH_MAX} characters` : null;
}

/** The same for a URL to which paths are added. */
export function executorBaseUrlFault(url: unknown): string | null {
  const fault = executorUrlFault(url);
  if (fault !== null) return fault;
  return /[?#]/.test(url as string) ? "end before any `?` or `#`: paths are added to it" : null;
}

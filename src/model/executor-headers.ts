import { codeList, isObject, preview } from "./input/field-checks.ts";

/** The valid names of header fields (RFC 9110, "token"). */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** The valid values: Latin-1 without control characters, above all without line breaks. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers of the connection itself, which the HTTP client sets. */
const OF_THE_CONNECTION: readonly string[] = [
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** Most servers refuse more than this. */
const HEADERS_LENGTH_MAX = 8_192;

/**
 * What is wrong with the header fields of an executor, as the rest of "`headers` must …"; null: nothing. The sentence repeats no
 * value, since values contain tokens and passwords.
 */
export function executorHeadersFault(headers: unknown): string | null {
  if (!isObject(headers)) return "be an object of strings";
  const seen = new Set<string>();
  let length = 0;
  for (const [name, value] of Object.entries(headers)) {
    const fault = nameFault(name, seen) ?? valueFault(name, value);
    if (fault !== null) return fault;
    seen.add(name.toLowerCase());
    length += name.length + String(value).length;
  }
  return length > HEADERS_LENGTH_MAX ? `have at most ${HEADERS_LENGTH_MAX} characters in all` : null;
}

function nameFault(name: string, seen: ReadonlySet<string>): string | null {
  if (!NAME.test(name)) {
    return `have names of letters, digits and dashes, like \`x-api-key\`, not "${preview(name)}"`;
  }
  if (OF_THE_CONNECTION.includes(name.toLowerCase())) {
    return `not set ${codeList([name])}, which belongs to the connection`;
  }
  return seen.has(name.toLowerCase())
    ? `have ${codeList([preview(name)])} only once, however it is written`
    : null;
}

function valueFault(name: string, value: unknown): string | null {
  const field = `\`${preview(name)}\``;
  if (typeof value !== "string") return `be an object of strings: ${field} is not a string`;
  if (VALUE.test(value)) return null;
  return `have values without line breaks and other control characters, in Latin-1: that of ${field} is not`;
}

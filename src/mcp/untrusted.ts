/** How much of a text an answer has; with `full`, the second. More would fill the context of a model. */
export const TEXT_BYTES = { short: 2_048, full: 32_768 } as const;

/** How much of a field that a caller chose is quoted. */
const QUOTED_LENGTH_MAX = 200;

/** The most characters that are looked at: a few times as many as any answer has. */
const LOOKED_LENGTH_MAX = 4 * TEXT_BYTES.full;

/**
 * Control characters but for tab and line break, and characters that reverse, hide or carry text that people do not see: marks of
 * direction, spaces without width, tags. Terminals obey the former, and models read the latter. Joiners and selectors that make
 * up letters and emoji stay, unless they follow an ASCII letter, where they only hide what a word is.
 */
const UNSEEN =
  /(?![\t\n])\p{Cc}|(?!\u200c|\u200d|\ufe0e|\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\P{ASCII}|[0-9#*])(?:\u200c|\u200d|\ufe0e|\ufe0f)+|[\u2028\u2029\ufff9-\ufffb]|\p{Cs}/gu;

/** The words that begin and end what a task returned, in any case, with spaces in between and signs that look the same. */
const TAGS = /[<\ufe64\uff1c](?=[\s/\uff0f]*(?:result|error|message)\b)/giu;

/** Names that are shown as they are. */
const PLAIN_NAME = /^[\p{L}\p{M}\p{N}._:@/+-]{1,64}$/u;
const NAME_LENGTH_MAX = 64;

/** A text that cannot act on a terminal or hide anything. */
function withoutUnseen(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(UNSEEN, "");
}

/** A field that a caller or an agent chose, as part of a sentence: on one line, cut and in quotes. */
export function quoteField(text: string, lengthMax: number = QUOTED_LENGTH_MAX): string {
  const line = withoutUnseen(text.slice(0, LOOKED_LENGTH_MAX)).replaceAll(/\s+/g, " ").trim();
  const letters = [...line];
  const cut = letters.length > lengthMax ? `${letters.slice(0, lengthMax).join("")}…` : line;
  return `"${cut.replaceAll('"', "'").replaceAll(TAGS, "&lt;")}"`;
}

/** A name that a caller chose and that the reader may have to repeat: as JSON, so that it stays the same if it is harmless. */
export function quoteKey(key: string): string {
  return JSON.stringify(withoutUnseen(key)).replaceAll(TAGS, "&lt;");
}

/** The id of an agent or the like in a line of words: as it is if it looks like one, else cut and in quotes. */
export function nameText(name: string): string {
  return PLAIN_NAME.test(name) ? name : quoteField(name, NAME_LENGTH_MAX);
}

/** A sentence of Rota, which may name what a caller chose. */
export function harmless(sentence: string): string {
  return withoutUnseen(sentence).replaceAll(TAGS, "&lt;");
}

export interface UntrustedOptions {
  /** What it is: `result`, `error` or `message`. */
  readonly what: "result" | "error" | "message";
  /** Whose it is: the id of a task or a schedule. */
  readonly of: string;
  readonly bytesMax: number;
  /** How to get the rest, if it is cut. */
  readonly more: string;
}

/**
 * Marks what a task returned as data: between words that it cannot contain itself, and cut.
 *
 * @example
 * untrusted("done</result>", { what: "result", of: "tsk_1", bytesMax: 2_048, more: "get with full" });
 * // <result of tsk_1 untrusted>
 * // done&lt;/result>
 * // </result>
 */
export function untrusted(value: unknown, { what, of, bytesMax, more }: UntrustedOptions): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, withoutUnseenIn) ?? "null");
  const bytes = Buffer.byteLength(text);
  const safe = withoutUnseen(text.slice(0, LOOKED_LENGTH_MAX)).replaceAll(TAGS, "&lt;");
  const shown = cutAt(safe, bytesMax);
  const isCut = shown.length < safe.length || text.length > LOOKED_LENGTH_MAX;
  const rest = isCut ? `\n[… ${sizeText(bytes - Buffer.byteLength(shown))} more: ${more}]` : "";
  return `<${what} of ${of} untrusted>\n${shown}\n</${what}>${rest}`;
}

/** JSON would show a control character as what stands for it. */
function withoutUnseenIn(_name: string, value: unknown): unknown {
  return typeof value === "string" ? withoutUnseen(value) : value;
}

/** The beginning of a text, without half a character at its end. */
function cutAt(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= bytesMax) return text;
  let end = bytesMax;
  // 10xxxxxx: not the first byte of a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}

function sizeText(bytes: number): string {
  return bytes < 1_024 ? `${Math.max(bytes, 1)} bytes` : `${Math.ceil(bytes / 1_024)} KiB`;
}

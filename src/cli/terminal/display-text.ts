import stringWidth from "string-width";

/** Characters that move the cursor, change colours or reverse the direction of text. */
const CONTROL = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Text of others on one line, safe to show: the submitter of a task must not control the terminal of a user who lists it. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim().replaceAll(CONTROL, "�");
}

/** The same for text that may have several lines. */
export function safeLines(text: string): string {
  return text.replaceAll(CONTROL, (char) => (char === "\n" || char === "\t" ? char : "�"));
}

/** Escapes terminal control characters in JSON, with the same meaning. `JSON.stringify` escapes only those below the space. */
export function safeJson(json: string): string {
  return json.replaceAll(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The number of columns of a text in a terminal, without its styles. */
export function displayWidth(text: string): number {
  return stringWidth(text);
}

/** Splits text into what a reader sees as characters: an emoji may be several code points. */
const CHARACTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The text in at most `columns` columns, with … where it was cut. It must have no styles. */
export function cut(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let width = 0;
  let kept = "";
  for (const { segment } of CHARACTERS.segment(text)) {
    width += displayWidth(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept}…`;
}

/** The text padded with spaces to `columns` columns. */
export function pad(text: string, columns: number, align: "left" | "right" = "left"): string {
  const spaces = " ".repeat(Math.max(columns - displayWidth(text), 0));
  return align === "left" ? text + spaces : spaces + text;
}

import stringWidth from "string-width";

/** What would move the cursor, change colours or turn the direction of writing. */
const CONTROL = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * Text from elsewhere on one line, safe to show: whoever submits a task must not be able to write anything into the
 * terminal of the one who lists it.
 */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim().replaceAll(CONTROL, "�");
}

/** The same for text that may have several lines. */
export function safeLines(text: string): string {
  return text.replaceAll(CONTROL, (char) => (char === "\n" || char === "\t" ? char : "�"));
}

/** JSON with the same meaning in which what would control a terminal is escaped; `JSON.stringify` does that only below the space. */
export function safeJson(json: string): string {
  return json.replaceAll(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How many columns a text takes in a terminal, styles aside. */
export function displayWidth(text: string): number {
  return stringWidth(text);
}

/** What is one character to a reader: an emoji may be several code points. */
const CHARACTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The text in at most so many columns, with … where it was cut. It must have no styles. */
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

/** The text filled up with spaces to so many columns. */
export function pad(text: string, columns: number, align: "left" | "right" = "left"): string {
  const spaces = " ".repeat(Math.max(columns - displayWidth(text), 0));
  return align === "left" ? text + spaces : spaces + text;
}

import { MASK } from "./mask.ts";

/** A value in words: up to what ends a word. */
const WORD = /(?:(?:bearer|basic)\s+)?[^\s,;&)}\]"']+/iy;

/** A mask as a value, quoted or as a word. */
const MASKED = new RegExp(`(\\\\*["'])${MASK}\\1|${MASK}(?![^\\s,;&)}\\]"'])`, "y");

/**
 * Masks the values after names in a text: quoted values, whole objects and lists, and words. `names` matches a name, its
 * closing quote as the first group, and the separator up to the value. The end of the text may be cut off.
 */
export function maskInText(text: string, names: RegExp): string {
  let shown = "";
  let from = 0;
  names.lastIndex = 0;
  for (let found = names.exec(text); found !== null; found = names.exec(text)) {
    const begin = found.index + found[0].length;
    const { end, quote } = valueAt(text, begin);
    if (end > begin && text.slice(begin, end) !== "null") {
      // If the name is quoted, the mask is quoted, too, so that JSON stays valid.
      const around = quote || (found[1] ?? "");
      shown += `${text.slice(from, begin)}${around}${MASK}${around}`;
      from = end;
    }
    names.lastIndex = Math.max(end, begin);
  }
  return shown + text.slice(from);
}

/** Whether the text has a mask as the value of one of the names. */
export function hasMask(text: string, names: RegExp): boolean {
  for (const { 0: name, index } of text.matchAll(names)) {
    MASKED.lastIndex = index + name.length;
    if (MASKED.test(text)) return true;
  }
  return false;
}

/** The end of the value that begins here, and its quote character, if it has one. */
function valueAt(text: string, begin: number): { end: number; quote: string } {
  const quote = /\\*["']/y;
  quote.lastIndex = begin;
  const opening = quote.exec(text)?.[0] ?? "";
  if (opening !== "") return { end: quotedEnd(text, begin, opening.length - 1), quote: opening };
  if (text[begin] === "{" || text[begin] === "[") return { end: nestedEnd(text, begin), quote: "" };
  WORD.lastIndex = begin;
  return { end: begin + (WORD.exec(text)?.[0].length ?? 0), quote: "" };
}

/**
 * The end of a quoted text. In nested JSON each quote has `escapes` backslashes before it, and a backslash of the text is
 * written as twice as many plus two. The remainder of the backslashes before a quote says whether it closes the text.
 */
function quotedEnd(text: string, begin: number, escapes = 0): number {
  const quote = text[begin + escapes] ?? "";
  for (let at = text.indexOf(quote, begin + escapes + 1); at !== -1; at = text.indexOf(quote, at + 1)) {
    let before = 0;
    while (text[at - before - 1] === "\\" && at - before - 1 > begin + escapes) before += 1;
    if (before % (2 * (escapes + 1)) === escapes) return at + 1;
  }
  return text.length;
}

function nestedEnd(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = quotedEnd(text, at) - 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

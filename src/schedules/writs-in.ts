import { type InvalidWrit, parseWrit, type Writ } from "./writ.ts";

/**
 * The writs of a text, in order: one for each line that begins with `/schedule`, perhaps as an item of a list (`- `) or as code
 * (in backticks). If the message of a new schedule does not begin on that line, it is the text that follows, up to an empty line
 * or the next writ. `quotes`: text between Markdown fences is a quotation and is ignored.
 *
 * @example
 * writsIn("Will do.\n/schedule in 1 hour: look again"); // [{ kind: "create", phrase: "in 1 hour", message: "look again" }]
 */
export function writsIn(
  text: string,
  { quotes = false }: { readonly quotes?: boolean } = {},
): (Writ | InvalidWrit)[] {
  const lines = text.split(/\r\n|\n|\r/);
  const own = (quotes ? withoutQuotes(lines) : lines).map(bare);
  return own.flatMap((line, index) => (isWrit(line) ? [readWrit(own, index)] : []));
}

/** Checks only the beginning of a line: lines can be long. */
function isWrit(line: string): boolean {
  return /^\s*\/schedule(?!\S)/i.test(line);
}

/** A line without the list marker and the backticks that a model may put around a writ. */
function bare(line: string): string {
  const item = line.trimStart().replace(/^-\s/, "").trimStart();
  const [ticks = ""] = /^`*/.exec(item) ?? [];
  const rest = item.slice(ticks.length);
  if (!isWrit(rest)) return line;
  const end = ticks === "" ? -1 : rest.indexOf("`");
  if (end === -1) return rest;
  // Text after the closing backticks: the line is a sentence about a writ.
  return rest.slice(end).trimEnd() === ticks ? rest.slice(0, end) : line;
}

function readWrit(lines: readonly string[], at: number): Writ | InvalidWrit {
  const line = lines[at] as string;
  const writ = parseWrit(line);
  if (writ.kind !== "invalid" || !line.trimEnd().endsWith(":")) return writ;
  let end = at + 1;
  while (end < lines.length && lines[end]?.trim() !== "" && !isWrit(lines[end] as string)) end += 1;
  return parseWrit(lines.slice(at, end).join("\n"));
}

/** Replaces quoted lines by empty ones. */
function withoutQuotes(lines: readonly string[]): string[] {
  let fence: string | null = null;
  return lines.map((line) => {
    const [, marks, rest = ""] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (fence === null) {
      // Backticks that are closed on the same line are not a fence.
      fence = marks?.startsWith("`") && rest.includes("`") ? null : (marks ?? null);
      return fence === null ? line : "";
    }
    // A closing fence has the characters of the opening one, is at least as long, and is alone on its line.
    if (marks?.startsWith(fence) && rest.trim() === "") fence = null;
    return "";
  });
}

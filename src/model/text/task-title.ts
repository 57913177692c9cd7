import type { TaskSpec } from "../task.ts";

/** How many characters of a spec are read for its title. */
export const TITLE_READ = 600;
/** Larger specs have no title: to read the start of a text, SQLite reads all of it. */
export const TITLED_BYTES_MAX = 65_536;
/** How long a title and the error of a row are at most. */
export const ROW_TEXT_MAX = 160;

/**
 * The title of a task: the start of its work as text. `text` is its spec as JSON, whole or the first `TITLE_READ` characters.
 * It is not parsed: a page has a thousand of them.
 */
export function titleOf(text: string): string | null {
  const begin = /^\{"work":\{"kind":"\w+","\w+":/.exec(text)?.[0];
  if (begin === undefined) return null;
  const asked = readable(text.slice(begin.length));
  return cutShort(begin.endsWith('"action":') ? withTarget(asked, text) : asked);
}

/** An action with its target, if the text contains the whole spec. */
function withTarget(action: string, text: string): string {
  if (text.length >= TITLE_READ) return action;
  const { work } = JSON.parse(text) as TaskSpec;
  if (work.kind !== "action") return action;
  return [action, work.selector ?? work.ref, work.tabId && `in tab ${work.tabId}`].filter(Boolean).join(" ");
}

/** On one line, and no longer than a row shows. */
export function cutShort(text: string): string {
  const line = text.slice(0, TITLE_READ).replace(/\s+/g, " ").trim();
  if (line.length <= ROW_TEXT_MAX) return line;
  // Does not cut between two surrogates.
  return `${line.slice(0, ROW_TEXT_MAX - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The start of a JSON value whose end may be missing: the content of a string, or else the JSON itself. */
function readable(json: string): string {
  const value = firstValue(json);
  if (!value.startsWith('"')) return value;
  const text = value.slice(1).replace(/"$/, "");
  // An escape may have been cut in two.
  const whole = text.replace(/\\(?:u[\da-f]{0,3})?$/i, (cut) => (isEscaped(text, cut) ? cut : ""));
  try {
    return JSON.parse(`"${whole}"`);
  } catch {
    return whole;
  }
}

/** Whether the backslash that `cut` begins with is itself escaped, so that nothing was cut. */
function isEscaped(text: string, cut: string): boolean {
  const before = /\\*$/.exec(text.slice(0, text.length - cut.length))?.[0] ?? "";
  return before.length % 2 === 1;
}

/** The first value of a text, up to its end if there is one. */
function firstValue(json: string): string {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (inText) {
      if (char === "\\") at += 1;
      else if (char === '"') inText = false;
      if (!inText && depth === 0) return json.slice(0, at + 1);
    } else if (char === '"') inText = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth <= 0) return json.slice(0, depth < 0 ? at : at + 1);
    } else if (char === "," && depth === 0) return json.slice(0, at);
  }
  return json;
}

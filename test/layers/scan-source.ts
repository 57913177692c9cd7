/** One import or re-export found in a source file. */
export interface FoundImport {
  specifier: string;
  /** `type` leaves no trace at run time; `dynamic` loads when it is reached; `static` loads with the file. */
  kind: "static" | "type" | "dynamic";
  line: number;
}

export interface ScannedSource {
  imports: FoundImport[];
  /** Lines with an `import()` of something else than a string, which cannot be checked by reading. */
  opaqueImports: number[];
  /** The source without comments and without the contents of strings, line by line as it was. */
  code: string;
}

/**
 * Finds what a TypeScript file imports. TypeScript 7 has no compiler API to ask, and a search for `from "` would be
 * taken in by comments and strings; so those are taken out first and imports are looked for in what remains.
 */
export function scanSource(source: string): ScannedSource {
  const { code, strings } = takeOutText(source);
  const imports: FoundImport[] = [];
  const lineAt = (index: number) => code.slice(0, index).split("\n").length;
  const collect = (pattern: RegExp, kindOf: (match: RegExpExecArray) => FoundImport["kind"]) => {
    for (const match of code.matchAll(pattern)) {
      const specifier = strings[Number(match.groups?.["string"])] ?? "";
      imports.push({ specifier, kind: kindOf(match), line: lineAt(match.index) });
    }
  };
  collect(IMPORT_FROM, (match) => (match.groups?.["type"] ? "type" : "static"));
  collect(EXPORT_FROM, (match) => (match.groups?.["type"] ? "type" : "static"));
  collect(IMPORT_BARE, () => "static");
  collect(IMPORT_CALL, () => "dynamic");
  imports.sort((a, b) => a.line - b.line);
  const opaqueImports = [...code.matchAll(IMPORT_CALL_OPAQUE)].map((match) => lineAt(match.index));
  return { imports, opaqueImports, code: code.replaceAll(STRING, '""') };
}

// In the code that remains, a string is the number under which it was put aside, in quotes.
const STRING = /"\d+"/g;
const IMPORT_FROM = /(?<![.\w$])import\s+(?<type>type\s+(?!from\b))?[\w$\s,*{}]+?\s*from\s*"(?<string>\d+)"/g;
const EXPORT_FROM =
  /(?<![.\w$])export\s+(?<type>type\s+)?(?:\*(?:\s*as\s+[\w$]+)?|\{[^{}]*\})\s*from\s*"(?<string>\d+)"/g;
const IMPORT_BARE = /(?<![.\w$])import\s*"(?<string>\d+)"/g;
const IMPORT_CALL = /(?<![.\w$])import\s*\(\s*"(?<string>\d+)"\s*[,)]/g;
const IMPORT_CALL_OPAQUE = /(?<![.\w$])import\s*\((?!\s*"\d+"\s*[,)])/g;

/** Replaces comments, the text of templates and regular expressions by nothing, and strings by a number each. */
function takeOutText(source: string): { code: string; strings: string[] } {
  const strings: string[] = [];
  // For each template we are inside of: how many braces its current ${…} has open.
  const templates: number[] = [];
  let code = "";
  let at = 0;

  while (at < source.length) {
    const rest = source.slice(at, at + 2);
    const char = source.charAt(at);
    if (rest === "//") skipTo(endOfLine(source, at));
    else if (rest === "/*") skipTo(source.indexOf("*/", at + 2) + 2);
    else if (char === '"' || char === "'") takeString(char);
    else if (char === "`") skipTemplate(at + 1);
    else if (char === "}" && templates.at(-1) === 0) {
      templates.pop();
      skipTemplate(at + 1);
    } else if (char === "/" && startsRegExp(code)) skipTo(endOfRegExp(source, at));
    else {
      if (templates.length > 0) countBrace(char);
      code += char;
      at += 1;
    }
  }
  return { code, strings };

  /** Leaves the line breaks, so that line numbers stay true. */
  function skipTo(end: number): void {
    const stop = end <= at ? source.length : end;
    code += ` ${source.slice(at, stop).replace(/[^\n]/g, "")}`;
    at = stop;
  }

  function takeString(quote: string): void {
    const end = endOfQuoted(source, at, quote);
    code += `"${strings.push(source.slice(at + 1, end - 1)) - 1}"`;
    at = end;
  }

  /** Goes on to the template's end or to its next ${, whose contents are code again. */
  function skipTemplate(from: number): void {
    let end = from;
    while (end < source.length && source.charAt(end) !== "`" && !source.startsWith("${", end)) {
      end += source.charAt(end) === "\\" ? 2 : 1;
    }
    const isCode = source.startsWith("${", end);
    if (isCode) templates.push(0);
    skipTo(end + (isCode ? 2 : 1));
  }

  function countBrace(char: string): void {
    const open = templates.pop() ?? 0;
    templates.push(char === "{" ? open + 1 : char === "}" ? open - 1 : open);
  }
}

function endOfLine(source: string, from: number): number {
  const end = source.indexOf("\n", from);
  return end === -1 ? source.length : end;
}

function endOfQuoted(source: string, from: number, quote: string): number {
  let at = from + 1;
  while (at < source.length && source.charAt(at) !== quote) at += source.charAt(at) === "\\" ? 2 : 1;
  return at + 1;
}

/** A slash divides after a value and begins a regular expression everywhere else. */
function startsRegExp(before: string): boolean {
  const code = before.trimEnd();
  if (code === "" || /[(,=:[!&|?{};+\-*%<>~^]$/.test(code)) return true;
  return /\b(?:return|typeof|case|in|of|do|else|void|delete|throw|await|yield)$/.test(code);
}

function endOfRegExp(source: string, from: number): number {
  let at = from + 1;
  let isInClass = false;
  while (at < source.length && source.charAt(at) !== "\n") {
    const char = source.charAt(at);
    if (char === "\\") at += 1;
    else if (char === "[") isInClass = true;
    else if (char === "]") isInClass = false;
    else if (char === "/" && !isInClass) break;
    at += 1;
  }
  return at + 1;
}

export interface CodeBlock {
  readonly language: string;
  readonly text: string;
  readonly line: number;
  /** The last line before it that is not empty. */
  readonly before: string;
}

/** The fenced blocks of a page, in order. */
export function codeBlocks(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  for (const match of page.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    const [, language = "", text = ""] = match;
    const above = page.slice(0, match.index);
    const before = above.trimEnd().split("\n").at(-1) ?? "";
    blocks.push({ language, text, line: above.split("\n").length, before });
  }
  return blocks;
}

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
export function section(page: string, name: string): string {
  const text = new RegExp(`<!-- ${name} -->\n(.*?)<!-- /${name} -->`, "s").exec(page)?.[1];
  if (text === undefined) throw new Error(`the page has no section ${name}`);
  return text;
}

/** The page with something else between `<!-- name -->` and `<!-- /name -->`. */
export function replaceSection(page: string, name: string, text: string): string {
  return page.replace(`<!-- ${name} -->\n${section(page, name)}`, () => `<!-- ${name} -->\n${text}`);
}

/** A table as the formatter likes it: columns of one width. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const [head = [], ...body] = rows;
  const lines = [head, widths.map((width) => "-".repeat(width)), ...body];
  return lines
    .map((cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`)
    .join("");
}

/** The rows of the tables in a text, each as its cells. */
export function tableRows(text: string): string[][] {
  const lines = text.split("\n");
  const isRule = (line = "") => /^\|(?: -+ \|)+$/.test(line);
  return lines
    .filter((line, index) => line.startsWith("|") && !isRule(line) && !isRule(lines[index + 1]))
    .map((row) =>
      row
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
}

/** The first cells of tables of names, without their backticks. */
export function namesIn(text: string): string[] {
  return tableRows(text).map(([name = ""]) => name.replaceAll("`", ""));
}

import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { tableRows } from "./docs/markdown.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGES = ["CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: ROOT }).sort()];
/** Pages for people who change the code: names in them are names in the code. */
const PAGES_ON_CODE = ["CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md"];
const FOLDERS = "{src,test,docs,dashboard,bench,scripts,examples}";
const FILES = globSync(`${FOLDERS}/**/*.{ts,tsx,sql,md}`, { cwd: ROOT, exclude: ["**/node_modules/**"] });
const FILE_NAMES = new Set(FILES.map((file) => basename(file)));
const WORDS = wordsIn(["src/**/*.{ts,sql}", "test/**/*.ts", "package.json"]);
const MIGRATIONS = "src/storage/{sqlite,postgres}/migrations/*.sql";

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** What stands between backticks, outside of fenced blocks. */
function codeSpans(page: string): string[] {
  const text = page.replaceAll(/^```.*?^```$/gms, "");
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
}

/** The words of all files that match, as they would be searched for. */
function wordsIn(pattern: string | string[]): ReadonlySet<string> {
  const files = globSync(pattern, { cwd: ROOT, exclude: ["**/node_modules/**"] });
  return new Set(files.flatMap((file) => read(file).match(/\w+/g) ?? []));
}

test.each(PAGES)("files that %s names by their pattern or alone exist", (page) => {
  const spans = codeSpans(read(page));
  const patterns = spans.filter((span) => /^(?:src|test|dashboard|bench|scripts)\/[\w./*<>-]+$/.test(span));
  const isThere = (pattern: string) =>
    globSync(pattern.replaceAll(/<\w+>/g, "*").replace(/\/$/, ""), { cwd: ROOT }).length > 0;
  expect(patterns.filter((pattern) => !isThere(pattern))).toEqual([]);

  // Sentences name a file alone, or with its folder, where the rest of its path was named before.
  const names = spans.filter((span) => /^(?:[\w-]+\/)?[\w.-]+\.(?:ts|tsx|sql)$/.test(span));
  const isKnown = (name: string) =>
    name.includes("/") ? FILES.some((file) => `/${file}`.endsWith(`/${name}`)) : FILE_NAMES.has(name);
  expect(names.filter((name) => !isKnown(name))).toEqual([]);
});

test.each(PAGES_ON_CODE)("names of the code in %s exist", (page) => {
  const spans = codeSpans(read(page)).filter((span) => /^[a-z]\w*(?:\.\w+)*(?:\(\))?$/.test(span));
  const unknown = spans.filter((span) => !(span.match(/\w+/g) ?? []).every((word) => WORDS.has(word)));
  expect(unknown.filter((span) => !FILE_NAMES.has(span))).toEqual([]);
});

test("tables and columns of docs/glossary.md exist", () => {
  const words = wordsIn(MIGRATIONS);
  const [, table = ""] = /^## Tables with older names\n(.*)/ms.exec(read("docs/glossary.md")) ?? [];
  const names = tableRows(table.slice(table.indexOf("|"))).flatMap(([cell = ""]) => codeSpans(cell));
  expect(names.length).toBeGreaterThan(15);
  // `parked = 'asking'` names a column and one of its values.
  const columns = names.flatMap((name) => (name.split(" = ")[0] ?? "").split("."));
  expect(columns.filter((column) => !words.has(column))).toEqual([]);
});

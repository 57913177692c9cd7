import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { readSql } from "./sql-file.ts";

const DRIVER = join(import.meta.dirname, "..");
const INLINE_LINES_MAX = 30;

function sqlFile(text: string): URL {
  const folder = mkdtempSync(join(tmpdir(), "rota-sql-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "some.sql");
  writeFileSync(file, text);
  return pathToFileURL(file);
}

test("placeholders are filled wherever they occur, and casts are left alone", () => {
  const file = sqlFile("select a[1: :MAX], :MAX, '$$ :NAME'::TEXT, '08:AM'");
  expect(readSql(file, { MAX: 7, NAME: "$&" })).toBe("select a[1: 7], 7, '$$ $&'::TEXT, '08:AM'");
});

test("a placeholder without a value and a value without a placeholder are refused", () => {
  expect(() => readSql(sqlFile("select :MAX"))).toThrow("names :MAX, which has no value");
  expect(() => readSql(sqlFile("select 1"), { MAX: 7 })).toThrow("does not use MAX");
});

test("functions of more than thirty lines are in .sql files, each beside the module that reads it", () => {
  const inline = globSync("**/*.ts", { cwd: DRIVER }).flatMap((file) =>
    longFunctions(readFileSync(join(DRIVER, file), "utf8")).map((name) => `${file}: ${name}`),
  );
  expect(inline).toEqual([]);
  for (const file of globSync("*/*.sql", { cwd: DRIVER, exclude: ["migrations/*"] })) {
    const reader = readFileSync(join(DRIVER, file.replace(/\.sql$/, ".ts")), "utf8");
    expect(reader).toContain(`readSql(new URL("./${file.replace(/^.*[\\/]/, "")}", import.meta.url)`);
  }
});

test("no rank or priority is compared with a number that is typed out", () => {
  const typed = globSync("*/*.{ts,sql}", { cwd: DRIVER, exclude: ["migrations/*"] }).filter((file) =>
    /(rank|priority) <= \d/.test(readFileSync(join(DRIVER, file), "utf8")),
  );
  expect(typed).toEqual([]);
});

function longFunctions(source: string): string[] {
  return [...source.matchAll(/create function (\w+)[^$]*\$\$([^$]|\$(?!\$))*\$\$/g)]
    .filter(([text]) => text.split("\n").length > INLINE_LINES_MAX)
    .map(([, name]) => name ?? "");
}

import { expect, test } from "vitest";
import { cut, displayWidth, oneLine, pad, safeJson, safeLines } from "../terminal/display-text.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";

const COLUMNS = [
  { title: "ID" },
  { title: "WHAT", shrinksTo: 4 },
  { title: "N", align: "right" as const },
  { title: "MORE", shrinksTo: 5 },
];

test("columns are as wide as what is in them", () => {
  expect(
    tableLines(COLUMNS, [
      ["a", "read", "1", "x"],
      ["bbb", "r", "200", ""],
    ]),
  ).toEqual(["ID   WHAT    N  MORE", "a    read    1  x", "bbb  r     200"]);
});

test("columns that may give way, the last first, when there is no room", () => {
  const rows = [["id", "what there is", "1", "and more of it"]];
  expect(tableLines(COLUMNS, rows, { width: 30 })).toEqual([
    "ID  WHAT           N  MORE",
    "id  what there is  1  and mor…",
  ]);
  expect(tableLines(COLUMNS, rows, { width: 20 })).toEqual(["ID  WHAT    N  MORE", "id  what …  1  and …"]);
});

test("what cannot give way is never cut", () => {
  expect(tableLines([{ title: "ID" }], [["tsk_0123456789"]], { width: 5 })[1]).toBe("tsk_0123456789");
});

test("a sheet has names beside values, and only those that are there", () => {
  expect(
    sheetLines([
      ["a", "1"],
      ["none", undefined],
      ["longer", "two\nlines"],
    ]),
  ).toEqual(["a       1", "longer  two", "        lines"]);
});

test.each([
  ["plain", 5],
  ["größe", 5],
  ["日本語", 6],
  ["e\u0301", 1],
  ["🤖!", 3],
  ["👩‍💻", 2],
  ["🇩🇪", 2],
  ["❤️", 2],
  ["\x1b[31mred\x1b[39m", 3],
])("%j takes %i columns", (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test.each([
  ["abcdef", 6, "abcdef"],
  ["abcdef", 4, "abc…"],
  ["日本語", 4, "日…"],
  ["👩‍💻 team", 4, "👩‍💻 …"],
  ["abc", 0, ""],
])("%j in %i columns is %j", (text, columns, shown) => {
  expect(cut(text, columns)).toBe(shown);
});

test("text is filled up by what it takes, not by its length", () => {
  expect(pad("日本", 6)).toBe("日本  ");
  expect(pad("7", 3, "right")).toBe("  7");
});

test("text from elsewhere cannot write into a terminal", () => {
  const hostile = "a\x1b[2Jb\r\nc\x07\u202Ed\x9b31m";
  expect(oneLine(hostile)).toBe("a�[2Jb c��d�31m");
  expect(safeLines(hostile)).toBe("a�[2Jb�\nc��d�31m");
});

test("JSON that is shown controls no terminal, and means the same", () => {
  const value = { text: "a\u009b2J\u202egnp\u2066x\u2069\u001b[31m\u007f é 😀" };
  const shown = safeJson(JSON.stringify(value));
  expect(shown).toMatch(/^[ -~é😀]+$/u);
  expect(JSON.parse(shown)).toEqual(value);
});

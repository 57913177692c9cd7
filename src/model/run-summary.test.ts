import { expect, test } from "vitest";
import { runSummary, SUMMARY_BYTES_MAX } from "./run-summary.ts";

const bytes = (text: string | undefined) => new TextEncoder().encode(text).length;

test("shows a text as it is, and anything else as JSON", () => {
  expect(runSummary("all green")).toBe("all green");
  expect(runSummary("")).toBe("");
  expect(runSummary({ merged: 3, by: ["ada"] })).toBe('{"merged":3,"by":["ada"]}');
  expect([runSummary(0), runSummary(false), runSummary([])]).toEqual(["0", "false", "[]"]);
});

test("shows nothing of a result that is nothing", () => {
  expect([runSummary(null), runSummary(undefined)]).toEqual([undefined, undefined]);
});

test("shows 4096 bytes in full, and of more the beginning", () => {
  const full = "x".repeat(SUMMARY_BYTES_MAX);
  expect(runSummary(full)).toBe(full);
  expect(runSummary(`${full}y`)).toBe(full);
  expect(runSummary({ text: full })).toBe(JSON.stringify({ text: full }).slice(0, SUMMARY_BYTES_MAX));
});

test.each(["é", "漢", "🦊"])("never cuts through %s", (character) => {
  for (const before of ["", "x", "xx", "xxx"]) {
    const text = before + character.repeat(SUMMARY_BYTES_MAX);
    const summary = runSummary(text) ?? "";
    expect(text.startsWith(summary)).toBe(true);
    expect(summary).not.toContain("\u{fffd}");
    expect(bytes(summary)).toBeLessThanOrEqual(SUMMARY_BYTES_MAX);
    expect(bytes(summary)).toBeGreaterThan(SUMMARY_BYTES_MAX - bytes(character));
  }
});

test("replaces what not every database stores", () => {
  expect(runSummary("a\0b")).toBe("a\u{fffd}b");
  expect(runSummary("a\ud800b")).toBe("a\u{fffd}b");
  expect(bytes(runSummary("\0".repeat(SUMMARY_BYTES_MAX)))).toBeLessThanOrEqual(SUMMARY_BYTES_MAX);
});

import { expect, test } from "vitest";
import { runSummary, SUMMARY_BYTES_MAX } from "./run.ts";

const bytes = (text: string | undefined) => new TextEncoder().encode(text).length;

test("shows a text as it is, and anything else as JSON", () => {
  expect(runSummary("all green")).toBe("all green");
  expect(runSummary("")).toBe("");
  expect(runSummary({ merged: 3, by: ["ada"] })).toBe('{"merged":3,"by":["ada"]}');
  expect([runSummary(0), runSummary(false), runSummary([])]).toEqual(["0", "false", "[]"]);
});

test("is undefined for a task without a result", () => {
  expect([runSummary(null), runSummary(undefined)]).toEqual([undefined, undefined]);
});

const MARK = "[truncated]";
const ROOM = SUMMARY_BYTES_MAX - MARK.length;

test("shows 4096 bytes in full; a longer text is cut and marked", () => {
  const full = "x".repeat(SUMMARY_BYTES_MAX);
  expect(runSummary(full)).toBe(full);
  expect(runSummary(`${full}y`)).toBe(full.slice(0, ROOM) + MARK);
  expect(bytes(runSummary(`${full}y`))).toBe(SUMMARY_BYTES_MAX);
  expect(runSummary({ text: full })).toBe(JSON.stringify({ text: full }).slice(0, ROOM) + MARK);
});

test.each(["é", "漢", "🦊"])("never cuts through %s", (character) => {
  for (const before of ["", "x", "xx", "xxx"]) {
    const text = before + character.repeat(SUMMARY_BYTES_MAX);
    const [summary = "", rest] = (runSummary(text) ?? "").split(MARK);
    expect(rest).toBe("");
    expect(text.startsWith(summary)).toBe(true);
    expect(summary).not.toContain("\u{fffd}");
    expect(bytes(summary)).toBeLessThanOrEqual(ROOM);
    expect(bytes(summary)).toBeGreaterThan(ROOM - bytes(character));
  }
});

test("replaces characters that not every database stores", () => {
  expect(runSummary("a\0b")).toBe("a\u{fffd}b");
  expect(runSummary("a\ud800b")).toBe("a\u{fffd}b");
  expect(bytes(runSummary("\0".repeat(SUMMARY_BYTES_MAX)))).toBeLessThanOrEqual(SUMMARY_BYTES_MAX);
});

import { expect, test } from "vitest";
import { progressText } from "./doctor-lines.ts";
import { ProgressLine } from "./progress-line.ts";

test("progress takes one line, as wide as the terminal, and is gone at the end", () => {
  let written = "";
  const write = (text: string) => {
    written += text;
    return true;
  };
  const line = new ProgressLine({ columns: 12, write: write as NodeJS.WriteStream["write"] });
  line.clear();
  expect(written).toBe("");
  line.show("looking at counters");
  line.show("done");
  line.clear();
  expect(written).toBe("\r\u001b[Klooking at \r\u001b[Kdone\r\u001b[K");
});

test("progress says how far it is, where that is known", () => {
  expect(progressText({ check: "counters", done: 50, total: 200 })).toBe(
    "checking counters: 50 of 200 (25 %)",
  );
  expect(progressText({ check: "schedules", done: 7, total: null })).toBe("checking schedules: 7");
});

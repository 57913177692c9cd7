import { expect, test } from "vitest";
import { ROW_TEXT_MAX, TITLE_READ, titleOf } from "./task-title.ts";

const rest = { retryPolicy: {}, timeoutMs: 120_000 };

function start(work: object): string {
  return JSON.stringify({ work, ...rest }).slice(0, TITLE_READ);
}

test.each([
  [{ kind: "instruction", instruction: 'Read "it"\n  aloud' }, 'Read "it" aloud'],
  [{ kind: "message", message: "Where is my parcel?" }, "Where is my parcel?"],
  [{ kind: "custom", payload: { n: [1, "}"] } }, '{"n":[1,"}"]}'],
  [{ kind: "custom", payload: null }, "null"],
  [{ kind: "action", action: "click", tabId: "t1", selector: "#send" }, "click #send in tab t1"],
  [{ kind: "action", action: "type", ref: "e12" }, "type e12"],
])("shows the work of %j", (work, title) => {
  expect(titleOf(start(work))).toBe(title);
});

test("cuts a long text, wherever its JSON was cut", () => {
  for (const text of [
    "x".repeat(500),
    "\\".repeat(500),
    '"'.repeat(500),
    "\u0001ab".repeat(200),
    "😀".repeat(300),
  ]) {
    for (let shift = 0; shift < 8; shift += 1) {
      const message = "a".repeat(shift) + text;
      const title = titleOf(start({ kind: "message", message })) ?? "";
      expect(title.length).toBeLessThanOrEqual(ROW_TEXT_MAX);
      const shown = title.replace(/…$/, "");
      expect(message.replace(/\s+/g, " ").startsWith(shown)).toBe(true);
      expect(shown.length).toBeGreaterThan(50);
    }
  }
});

test("is null for an unknown kind of task", () => {
  expect(titleOf('{"other":1}')).toBeNull();
});

import { expect, test } from "vitest";
import { parseTaskCursor, taskCursorText } from "./task-cursor.ts";
import { TASK_ORDERS } from "./task-order.ts";

test.each(TASK_ORDERS)("a cursor of the order %s is accepted there and nowhere else", (order) => {
  const cursor = taskCursorText(42, order);
  expect(parseTaskCursor(cursor, order)).toBe(42);
  for (const other of TASK_ORDERS.filter((each) => each !== order)) {
    expect(() => parseTaskCursor(cursor, other)).toThrow(
      `invalid cursor: it is of a list with the order \`${order}\`, and this one has \`${other}\`: send \`order=${order}\` with it, or leave \`cursor\` out to start from the first page`,
    );
  }
});

test.each(["", "x1", "c", "-1", "1.5", "9999999999999999", "c1c", "1 "])("%j is none", (cursor) => {
  expect(() => parseTaskCursor(cursor)).toThrow(
    "invalid cursor: `cursor` must be the `nextCursor` of the page before",
  );
});

test("none is the first page", () => {
  expect(parseTaskCursor(undefined, "completed")).toBeUndefined();
});

import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { pageText } from "./page-text.ts";

test("a page is written as JSON.stringify would", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        tasks: fc.array(fc.option(fc.jsonValue(), { nil: undefined })),
        count: fc.nat(),
        nextCursor: fc.option(fc.string()),
        left: fc.constant(undefined),
      }),
      async (page) => {
        expect(await pageText(page)).toBe(JSON.stringify(page));
      },
    ),
  );
});

test.each([
  ["large rows", Array.from({ length: 40 }, () => "x".repeat(100_000)), 13],
  ["many rows", Array.from({ length: 1_000 }, (_, n) => n), 5],
])("others get their turn between pieces of a page of %s", async (_what, tasks, turns) => {
  const yielded = vi.spyOn(globalThis, "setImmediate");
  await pageText({ tasks, count: tasks.length });
  expect(yielded.mock.calls.length).toBeGreaterThanOrEqual(turns);
  yielded.mockRestore();
});

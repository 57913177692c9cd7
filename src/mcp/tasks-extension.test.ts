import { expect, test } from "vitest";
import { pollMs } from "./tasks-extension.ts";

test("a client polls a running task often, a waiting one less, and a delayed one when it is due", () => {
  const now = Date.parse("2030-01-01T00:00:00Z");
  const delayed = (aheadMs: number) =>
    pollMs({ state: "delayed", runAt: new Date(now + aheadMs).toISOString() }, now);
  expect(pollMs({ state: "running" }, now)).toBe(1_000);
  expect(pollMs({ state: "queued" }, now)).toBe(3_000);
  expect(pollMs({ state: "waiting_dependency" }, now)).toBe(3_000);
  expect([delayed(3_600_000), delayed(20_000), delayed(10), delayed(-5_000)]).toEqual([
    60_000, 20_000, 1_000, 1_000,
  ]);
});

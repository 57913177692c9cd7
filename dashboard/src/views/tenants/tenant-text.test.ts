import { expect, test } from "vitest";
import { sayBytes, sayLimits } from "./tenant-text.ts";

test.each([
  [0, "0\u00a0B"],
  [1_023, "1023\u00a0B"],
  [1_536, "1.5\u00a0KiB"],
  [5 * 1_024 ** 3, "5\u00a0GiB"],
  [2 ** 62, "4194304\u00a0TiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(sayBytes(bytes)).toBe(text);
});

test("limits are named, and only those that are set", () => {
  const none = {
    maxQueued: null,
    maxInflight: null,
    maxSchedules: null,
    maxSessions: null,
    maxStreams: null,
    maxAgents: null,
    maxStoredBytes: null,
  };
  expect(sayLimits(none)).toBe("");
  expect(sayLimits({ ...none, maxInflight: 5, maxStoredBytes: 1_024 })).toBe("5 running, 1\u00a0KiB stored");
});

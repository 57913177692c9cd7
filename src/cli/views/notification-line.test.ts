import { expect, test } from "vitest";
import type { Notification } from "../../interface/notifications.ts";
import { notificationLine } from "./notification-line.ts";

const COMPLETED: Notification = {
  id: 5,
  kind: "run.completed",
  task_id: 17,
  run_id: 42,
  agent_id: "research",
  status: "succeeded",
  result_summary: "two\nlines",
  timestamp: Date.parse("2026-05-08T12:00:00Z") / 1_000,
};

test.each<[Partial<Notification>, string]>([
  [{}, "run.completed  #17  run 42  research  two lines"],
  [{ kind: "run.failed", error_message: "exit code 1" }, "run.failed  #17  run 42  research  exit code 1"],
  [
    { kind: "run.missed", reason: "it came late", moments: 5 },
    "run.missed  #17  run 42  research  for 5 moments: it came late",
  ],
])("%j is a line", (fields, line) => {
  expect(notificationLine({ ...COMPLETED, ...fields })).toBe(`2026-05-08T12:00:00Z  ${line}`);
});

test("a schedule that is paused is a line without a run", () => {
  const { run_id: _, result_summary: __, ...rest } = COMPLETED;
  expect(notificationLine({ ...rest, kind: "schedule.paused", status: "paused" })).toBe(
    "2026-05-08T12:00:00Z  schedule.paused  #17  research",
  );
});

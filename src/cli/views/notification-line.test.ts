import { expect, test } from "vitest";
import type { ScheduleNotification, WorkerNotification } from "../../interface/notifications.ts";
import { notificationLine } from "./notification-line.ts";

const COMPLETED: ScheduleNotification = {
  id: 5,
  kind: "run.completed",
  task_id: 17,
  run_id: 42,
  agent_id: "research",
  status: "succeeded",
  result_summary: "two\nlines",
  timestamp: Date.parse("2026-05-08T12:00:00Z") / 1_000,
};

test.each<[Partial<ScheduleNotification>, string]>([
  [{}, "run.completed  #17  run 42  research  two lines"],
  [{ kind: "run.failed", error_message: "exit code 1" }, "run.failed  #17  run 42  research  exit code 1"],
  [
    { kind: "run.missed", reason: "it came late", moments: 5 },
    "run.missed  #17  run 42  research  for 5 due times: it came late",
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

test.each<[Partial<WorkerNotification>, string]>([
  [{}, "worker.registered  wrk_1  py 1  writer,reader  4 slots"],
  [
    { kind: "worker.lost", attempts: 2, reason: "no sign of life for 15000 ms" },
    "worker.lost  wrk_1  py 1  writer,reader  held 2 of 4 slots  no sign of life for 15000 ms",
  ],
])("%j of a worker is a line", (fields, line) => {
  const registered: WorkerNotification = {
    id: 6,
    kind: "worker.registered",
    worker_id: "wrk_1",
    name: "py\n1",
    agents: ["writer", "reader"],
    slots: 4,
    timestamp: COMPLETED.timestamp,
  };
  expect(notificationLine({ ...registered, ...fields })).toBe(`2026-05-08T12:00:00Z  ${line}`);
});

import { describe, expect, test } from "vitest";
import type { RotaError } from "../../src/model/errors.ts";
import type { SubmitInput } from "../../src/model/input/submit-input.ts";
import { errorOf, type Open } from "./opened.ts";

const LATER = "2100-01-01T00:00:00Z";

export function describeDryRuns(open: Open): void {
  describe("tasks.dryRun", () => {
    test.each<SubmitInput>([
      { message: "hello", agentId: "research", sessionKey: "user:42" },
      { instruction: "Write", priority: "high", timeout: 5_000, runAt: LATER },
      { payload: { n: 1 }, metadata: { user: 42 }, dependsOn: ["tsk_unknown"], idempotencyKey: "once" },
      { agentId: "a", action: "click", tabId: "t" },
    ])("returns %j as a submit would store it, and stores nothing", async (input) => {
      const { api } = await open({ start: false });
      const { dryRun, task } = await api.tasks.dryRun(input);
      expect([dryRun, (await api.tasks.counts()).total]).toEqual([true, 0]);
      const { taskId } = await api.tasks.submit(input);
      const {
        taskId: _id,
        position: _position,
        attempts: _attempts,
        ...stored
      } = await api.tasks.get(taskId);
      expect(task).toEqual(stored);
    });

    test.each([[{ mesage: "a" }], [{ message: "a", priority: "urgent" }], [null]])(
      "refuses %j as a submit does",
      async (input) => {
        const { api } = await open({ start: false });
        const error = (await errorOf(api.tasks.dryRun(input as never))) as RotaError;
        const expected = (await errorOf(api.tasks.submit(input as never))) as RotaError;
        expect(error.toJSON()).toEqual(expected.toJSON());
      },
    );
  });

  describe("schedules.dryRun", () => {
    test("returns what a create would store with its next five due times, and stores nothing", async () => {
      const { api } = await open();
      const input = { schedule: "every day at 02:30", tz: "Europe/Berlin", message: "Look.", until: LATER };
      const { dryRun, scheduled_task: planned, normalized, next, notes } = await api.schedules.dryRun(input);
      expect([dryRun, (await api.schedules.list()).count]).toEqual([true, 0]);
      const created = await api.schedules.create(input);
      const { id: _id, ...stored } = created.scheduled_task;
      expect([planned, normalized]).toEqual([stored, created.normalized]);
      const previewed = await api.schedules.preview({ schedule: input.schedule, tz: input.tz });
      expect([next, notes]).toEqual([previewed.next, previewed.notes]);
      expect(next).toHaveLength(5);
    });

    test("returns no due time after `until`, and no more than `max_runs`", async () => {
      const { api } = await open();
      const [first, second] = (await api.schedules.preview({ schedule: "every day", tz: "UTC" })).next;
      const input = { schedule: "every day", tz: "UTC", message: "Look." };
      expect((await api.schedules.dryRun({ ...input, until: second as string })).next).toEqual([
        first,
        second,
      ]);
      expect((await api.schedules.dryRun({ ...input, max_runs: 1 })).next).toEqual([first]);
    });

    test.each([
      [{ schedule: "every mondy", message: "x" }],
      [{ schedule: "every day" }],
      [{ schedule: "every day", message: "x", agent: "nobody" }],
    ])("refuses %j as a create does", async (input) => {
      const { api } = await open();
      const error = (await errorOf(api.schedules.dryRun(input as never))) as RotaError;
      const expected = (await errorOf(api.schedules.create(input as never))) as RotaError;
      expect(error.toJSON()).toEqual(expected.toJSON());
    });
  });
}

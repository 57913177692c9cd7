import { expect, test } from "vitest";
import { shownSchedule } from "../../../test/support/shown-schedules.ts";
import type { ScheduledTask, SchedulePreview, SchedulePreviewInput } from "../../client/index.ts";
import { nextMoments } from "./next-moments.ts";

const NEXT = 1_778_482_800;
const PREVIEW: SchedulePreview = { normalized: "", kind: "recurring", next: [], notes: [] };

/** What the server is asked for. */
async function asked(overrides: Partial<ScheduledTask>): Promise<SchedulePreviewInput | undefined> {
  let input: SchedulePreviewInput | undefined;
  await nextMoments(shownSchedule(overrides), {
    async preview(given) {
      input = given;
      return PREVIEW;
    },
  });
  return input;
}

test("steps by elapsed time are counted from one step before the next moment", async () => {
  const recur_json = JSON.stringify({ kind: "every", everyMs: 900_000, tz: "UTC" });
  expect(await asked({ next_fire_at: NEXT, recur_json, schedule_phrase: "every 15 min" })).toEqual({
    schedule: { kind: "every", everyMs: 900_000 },
    from: new Date((NEXT - 900) * 1_000),
    tz: "UTC",
    count: 5,
  });
});

test("what is due at times of its own begins right before the next moment", async () => {
  expect(await asked({ next_fire_at: NEXT, tz: "Europe/Berlin" })).toEqual({
    schedule: "every monday at 09:00",
    from: new Date((NEXT - 1) * 1_000),
    tz: "Europe/Berlin",
    count: 5,
  });
});

test("the end of the schedule is the end of the list", async () => {
  const end = { next_fire_at: NEXT, max_runs: 12, run_count: 10 };
  expect(await asked(end)).toMatchObject({ count: 2 });
  const next = ["2026-05-11T09:00:00+02:00", "2026-05-18T09:00:00+02:00", "2026-05-25T09:00:00+02:00"];
  const until = Date.parse("2026-05-18T07:00:00Z") / 1_000;
  const preview = async () => ({ ...PREVIEW, next });
  const shown = await nextMoments(shownSchedule({ next_fire_at: NEXT, until }), { preview });
  expect(shown?.next).toEqual(next.slice(0, 2));
});

test("nothing is asked of what is due once, or paused", async () => {
  expect(await asked({ next_fire_at: NEXT, schedule_kind: "once", recur_json: null })).toBeUndefined();
  expect(await asked({ next_fire_at: 0, status: "paused" })).toBeUndefined();
});

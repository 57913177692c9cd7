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

test("nothing is asked of what is due once, or paused", async () => {
  expect(await asked({ next_fire_at: NEXT, schedule_kind: "once", recur_json: null })).toBeUndefined();
  expect(await asked({ next_fire_at: 0, status: "paused" })).toBeUndefined();
});

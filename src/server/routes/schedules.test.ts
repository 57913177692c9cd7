import { expect, test } from "vitest";
import type { z } from "zod";
import { openTestServer } from "../../../test/support/http.ts";
import { errorAnswer } from "../../api/error.ts";
import { previewSchedule, schedulePreview } from "../../api/schedules.ts";

test("a schedule is previewed, and what it answers is what the schema says", async () => {
  const { ask } = await openTestServer({ start: false });
  const answer = await ask("/v1/schedules/preview", { json: firstExample(previewSchedule.body) });
  expect([answer.status, schedulePreview.parse(answer.body)]).toEqual([200, firstExample(schedulePreview)]);
});

function firstExample(schema: z.ZodType): unknown {
  const { examples = [] } = schema.meta() as { examples?: readonly unknown[] };
  return examples[0];
}

test("what cannot be is refused in the one shape", async () => {
  const { ask } = await openTestServer({ start: false });
  const preview = (json: unknown) => ask("/v1/schedules/preview", { json });
  for (const [answer, status, code] of [
    [await preview({ schedule: "now and then" }), 400, "invalid_field"],
    [await preview({ schedule: "hourly", zone: "UTC" }), 400, "invalid_field"],
    [await preview("hourly"), 400, "invalid_field"],
    [await ask("/v1/schedules/preview", { method: "POST" }), 400, "invalid_field"],
    [await ask("/v1/schedules/preview?tz=UTC", { json: { schedule: "hourly" } }), 400, "invalid_field"],
    [await ask("/v1/schedules/preview"), 405, "method_not_allowed"],
    [await ask("/schedules/preview", { json: { schedule: "hourly" } }), 404, "not_found"],
  ] as const) {
    expect([answer.status, errorAnswer.parse(answer.body).code], answer.body.error).toEqual([status, code]);
  }
  expect((await preview({ schedule: "now and then" })).body.details.accepted).toContain("at HH:MM");
});

import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { openTestServer, type TestServer } from "../../../test/support/http.ts";
import { errorAnswer } from "../../api/error.ts";
import { runPage, shownRun } from "../../api/runs.ts";
import {
  createdSchedule,
  createSchedule,
  deletedSchedule,
  previewSchedule,
  runAnswer,
  scheduleList,
  schedulePreview,
  schedulesStatus,
  shownSchedule,
} from "../../api/schedules.ts";
import { settle } from "../../testing/manual-clock.ts";

const SCHEDULE = { schedule: "every 1 min", message: "look around" };

async function openWithSchedule(): Promise<TestServer> {
  const server = await openTestServer();
  expect((await server.ask("/v1/schedules", { json: SCHEDULE })).status).toBe(201);
  return server;
}

test("every response fits its schema", async () => {
  const { ask, clock } = await openWithSchedule();
  await clock.advance(60_000);
  await settle();
  for (const [answer, schema] of [
    [await ask("/v1/schedules"), scheduleList],
    [await ask("/v1/schedules?status=active"), scheduleList],
    [await ask("/v1/schedules/status"), schedulesStatus],
    [await ask("/v1/schedules/1"), shownSchedule],
    [await ask("/v1/schedules/1", { method: "PATCH", json: { name: "x" } }), shownSchedule],
    [await ask("/v1/schedules/1/run", { method: "POST" }), runAnswer],
    [await ask("/v1/schedules/1/run", { json: null }), runAnswer],
    [await ask("/v1/schedules/1/run", { json: {} }), runAnswer],
    [await ask("/v1/schedules/1/run", { json: { mode: "due" } }), runAnswer],
    [await ask("/v1/schedules/1/runs?limit=1"), runPage],
    [await ask("/v1/runs?since=0&status=succeeded&limit=100"), runPage],
    [await ask("/v1/runs/1"), shownRun],
    [await ask("/v1/schedules/1", { method: "DELETE" }), deletedSchedule],
  ] as const) {
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    expect(schema.parse(answer.body)).toEqual(answer.body);
  }
});

test("a schedule is made with what its examples say", async () => {
  const { ask } = await openTestServer();
  for (const json of examplesOf(createSchedule.body)) {
    const { status, body } = await ask("/v1/schedules", { json });
    expect([status, createdSchedule.parse(body)]).toEqual([201, body]);
  }
});

test("a schedule is previewed, and the response fits its schema", async () => {
  const { ask } = await openTestServer({ start: false });
  const [json] = examplesOf(previewSchedule.body);
  const [wanted] = examplesOf(schedulePreview);
  const answer = await ask("/v1/schedules/preview", { json });
  expect([answer.status, schedulePreview.parse(answer.body)]).toEqual([200, wanted]);
});

function examplesOf(schema: z.ZodType): readonly unknown[] {
  const { examples = [] } = schema.meta() as { examples?: readonly unknown[] };
  expect(examples).not.toEqual([]);
  return examples;
}

test("ids are numbers, and whatever else stands in their place is not found", async () => {
  const { ask } = await openWithSchedule();
  for (const id of ["2", "0", "-1", "1.0", "01", "1e0", "0x1", "+1", "one", "%20", "1%00", "9".repeat(30)]) {
    for (const [path, method, sentence] of [
      [`/v1/schedules/${id}`, "GET", "schedule not found"],
      [`/v1/schedules/${id}`, "DELETE", "schedule not found"],
      [`/v1/schedules/${id}/run`, "POST", "schedule not found"],
      [`/v1/schedules/${id}/runs`, "GET", "schedule not found"],
      [`/v1/runs/${id}`, "GET", "run not found"],
    ] as const) {
      const { status, body } = await ask(path, { method });
      expect([status, body], `${method} ${path}`).toEqual([404, { code: "not_found", error: sentence }]);
    }
    const patched = await ask(`/v1/schedules/${id}`, { method: "PATCH", json: { name: "x" } });
    expect([patched.status, patched.body.error], id).toEqual([404, "schedule not found"]);
  }
  expect((await ask("/v1/schedules")).body.count).toBe(1);
});

describe("what cannot be is refused in the one shape:", () => {
  test.each([
    ["POST", "/v1/schedules", { ...SCHEDULE, schedule: "now and then" }, 400, "was not understood"],
    ["POST", "/v1/schedules", { ...SCHEDULE, shedule: 1 }, 400, "did you mean `schedule`?"],
    ["POST", "/v1/schedules", { ...SCHEDULE, timezone: "UTC" }, 400, "did you mean `tz`?"],
    ["POST", "/v1/schedules", { cron: "0 9 * * *", message: "x" }, 400, "did you mean `schedule`?"],
    ["POST", "/v1/schedules", { ...SCHEDULE, prompt: "x" }, 400, "did you mean `message`?"],
    [
      "POST",
      "/v1/schedules",
      { ...SCHEDULE, timeout: 600_001 },
      400,
      "`timeouts.maxMs` of the configuration",
    ],
    ["GET", "/tasks?state=finished", undefined, 400, "did you mean `done`?"],
    ["POST", "/v1/agents", { name: "research" }, 400, "did you mean `id`?"],
    ["POST", "/v1/schedules", { ...SCHEDULE, agent: "unknown" }, 404, 'agent "unknown" not found'],
    ["POST", "/v1/schedules", { message: "x" }, 400, "`schedule`"],
    ["POST", "/v1/schedules", [SCHEDULE], 400, "takes an object"],
    ["POST", "/v1/schedules", undefined, 400, "takes an object"],
    ["POST", "/v1/schedules?tz=UTC", SCHEDULE, 400, "unknown query parameter `tz`"],
    ["PUT", "/v1/schedules", SCHEDULE, 405, "only GET, HEAD, POST"],
    ["POST", "/schedules", SCHEDULE, 404, "there is no route"],
    ["GET", "/v1/schedules?status=canceled", undefined, 400, "active, paused, completed or failed"],
    ["GET", "/v1/schedules?state=active", undefined, 400, "did you mean `status`?"],
    ["GET", "/v1/schedules?status=active&status=paused", undefined, 400, "`status`"],
    ["PATCH", "/v1/schedules/1", { status: "done" }, 400, "active or paused"],
    ["PATCH", "/v1/schedules/1", { enabled: false, status: "active" }, 400, "contradict each other"],
    ["PATCH", "/v1/schedules/1", { agent: "unknown" }, 404, 'agent "unknown" not found'],
    ["PATCH", "/v1/schedules/1", { id: 2 }, 400, "unknown field `id`"],
    ["PATCH", "/v1/schedules/1", undefined, 400, "must be an object"],
    ["DELETE", "/v1/schedules/status", undefined, 405, "only GET, HEAD"],
    ["GET", "/v1/schedules/preview", undefined, 405, "only POST"],
    ["POST", "/v1/schedules/1/run", { mode: "later" }, 400, "force or due"],
    ["POST", "/v1/schedules/1/run", "due", 400, "an object"],
    ["POST", "/v1/schedules/1/run", { force: true }, 400, "unknown field `force`"],
    ["GET", "/v1/schedules/1/runs?limit=101", undefined, 400, "from 1 to 100"],
    ["GET", "/v1/runs?since=yesterday", undefined, 400, "seconds since 1970"],
    ["GET", "/v1/runs?status=done", undefined, 400, "running, succeeded, failed, skipped or missed"],
    ["GET", "/v1/runs?limit=0", undefined, 400, "from 1 to 100"],
    ["GET", "/v1/runs?cursor=x", undefined, 400, "`next_cursor` of the page before"],
    ["GET", "/v1/runs?schedule=1", undefined, 400, "unknown query parameter `schedule`"],
    ["POST", "/v1/schedules/preview", { schedule: "hourly", zone: "UTC" }, 400, "unknown field `zone`"],
    ["POST", "/v1/schedules/preview", "hourly", 400, "takes an object"],
    ["POST", "/v1/schedules/preview?tz=UTC", { schedule: "hourly" }, 400, "this route takes none"],
    ["GET", "/tasks?scheduleId=x", undefined, 400, "`scheduleId` must be the id of a schedule"],
    ["GET", "/tasks/events?scheduleId=0", undefined, 400, "`scheduleId` must be the id of a schedule"],
  ] as const)("%s %s %j", async (method, path, json, status, sentence) => {
    const { ask } = await openWithSchedule();
    const before = (await ask("/v1/schedules")).body;
    const answer = await ask(path, { method, ...(json === undefined ? {} : { json }) });
    expect([answer.status, errorAnswer.parse(answer.body).error]).toEqual([
      status,
      expect.stringContaining(sentence),
    ]);
    expect((await ask("/v1/schedules")).body).toEqual(before);
    expect((await ask("/v1/runs")).body.count).toBe(0);
  });
});

test.each([
  [
    "POST",
    "/v1/schedules",
    'a schedule takes an object, like {"schedule": "every Mon at 09:00", "message": "Sum up last week."}',
  ],
  ["POST", "/v1/schedules/preview", 'a preview takes an object, like {"schedule": "every Mon at 09:00"}'],
  ["PATCH", "/v1/schedules/1", 'the changes of a schedule must be an object, like {"status": "paused"}'],
  [
    "POST",
    "/v1/writs",
    'writs take an object, like {"agent": "research", "text": "/schedule in 1 hour: look again"}',
  ],
])("an empty body of %s %s gets an error that says what to write", async (method, path, error) => {
  const { ask } = await openWithSchedule();
  const answer = await ask(path, { method, headers: { "content-type": "application/json" }, body: "" });
  expect([answer.status, answer.body.error]).toEqual([400, error]);
});

test("a key that would not be kept is refused", async () => {
  const { ask } = await openTestServer();
  const answer = await ask("/v1/schedules", { json: SCHEDULE, headers: { "idempotency-key": "k" } });
  expect([answer.status, answer.body.details]).toEqual([400, { field: "Idempotency-Key" }]);
  expect((await ask("/v1/schedules")).body.count).toBe(0);
});

test("an unknown phrase gets an error with all accepted forms", async () => {
  const { ask } = await openWithSchedule();
  const schedule = "now and then";
  for (const answer of [
    await ask("/v1/schedules", { json: { ...SCHEDULE, schedule } }),
    await ask("/v1/schedules/1", { method: "PATCH", json: { schedule } }),
    await ask("/v1/schedules/preview", { json: { schedule } }),
  ]) {
    expect([answer.status, answer.body.details.accepted]).toEqual([
      400,
      expect.arrayContaining(["at HH:MM"]),
    ]);
  }
});

test("while it stops nothing is made or changed, and all can be looked at", async () => {
  const { ask, rota } = await openWithSchedule();
  await rota.drain();
  for (const answer of [
    await ask("/v1/schedules", { json: SCHEDULE }),
    await ask("/v1/schedules/1", { method: "PATCH", json: { enabled: false } }),
    await ask("/v1/schedules/1/run", { method: "POST" }),
  ]) {
    expect([answer.status, answer.body.code, answer.headers.get("retry-after")]).toEqual([
      503,
      "draining",
      "5",
    ]);
  }
  for (const path of ["/v1/schedules", "/v1/schedules/1", "/v1/schedules/1/runs", "/v1/runs"]) {
    expect((await ask(path)).status, path).toBe(200);
  }
});

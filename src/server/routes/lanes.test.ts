import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { errorAnswer } from "../../api/error.ts";
import { clearedLane, lane, laneList } from "../../api/lanes.ts";

test("lanes are listed, changed, made and cleared", async () => {
  const { ask } = await openTestServer({ start: false });
  const listed = await ask("/v1/lanes");
  expect([listed.status, laneList.parse(listed.body).lanes.map(({ name }) => name)]).toEqual([
    200,
    ["tasks", "main", "subagent", "team", "cron"],
  ]);
  const made = await ask("/v1/lanes/crawl", { method: "PUT", json: { concurrency: 5, total: 20 } });
  expect([made.status, lane.parse(made.body)]).toEqual([
    200,
    { name: "crawl", concurrency: 5, total: 20, running: 0, waiting: 0, oldestWaitMs: null },
  ]);
  await ask("/tasks", { json: { message: "x", lane: "crawl" } });
  expect(lane.parse((await ask("/v1/lanes")).body.lanes.at(-1))).toMatchObject({ name: "crawl", waiting: 1 });
  const cleared = await ask("/v1/lanes/crawl/clear", { method: "POST" });
  expect([cleared.status, clearedLane.parse(cleared.body)]).toEqual([200, { cancelled: 1 }]);
});

test.each(["team/a", "mail:a@example.com", "a.b-c_d", "/", "@", "__proto__", "constructor"])(
  "a lane called %s is reached by its name, URL-encoded",
  async (name) => {
    const { ask } = await openTestServer();
    const path = `/v1/lanes/${encodeURIComponent(name)}`;
    const made = await ask(path, { method: "PUT", json: { concurrency: 2 } });
    expect(made.body).toMatchObject({ name, concurrency: 2 });
    const { taskId } = (await ask("/tasks", { json: { message: "x", lane: name } })).body;
    expect((await ask(`/tasks/${taskId}?wait=5`)).body).toMatchObject({ state: "done", lane: name });
    expect((await ask(`${path}/clear`, { method: "POST" })).body).toEqual({ cancelled: 0 });
  },
);

test("what cannot be is refused in the one shape", async () => {
  const { ask, rota } = await openTestServer({
    options: { lanes: { fixed: 3 }, scheduler: { maxInflight: 5 } },
  });
  const put = (name: string, json?: unknown) => ask(`/v1/lanes/${name}`, { method: "PUT", json });
  for (const [answer, status, code] of [
    [await put("two%20words", { concurrency: 1 }), 400, "invalid_field"],
    [await put("a", { concurrency: "1" }), 400, "invalid_field"],
    [await put("a", { conurrency: 1 }), 400, "invalid_field"],
    [await ask("/v1/lanes/a", { method: "PUT" }), 400, "invalid_field"],
    [await put("fixed", { concurrency: 1 }), 409, "conflict"],
    [await put("tasks", { concurrency: 1 }), 409, "conflict"],
    [await ask("/v1/lanes/nowhere/clear", { method: "POST" }), 404, "not_found"],
    [await ask("/v1/lanes/main/clear", { json: { all: true } }), 400, "invalid_field"],
    [await ask("/v1/lanes", { method: "POST" }), 405, "method_not_allowed"],
    [await ask("/lanes"), 404, "not_found"],
  ] as const) {
    expect([answer.status, errorAnswer.parse(answer.body).code], answer.body.error).toEqual([status, code]);
  }
  await rota.drain();
  const refused = await put("a", { concurrency: 1 });
  expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
    503,
    "draining",
    "5",
  ]);
  expect((await ask("/v1/lanes")).status).toBe(200);
});

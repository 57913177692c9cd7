import { describe, expect, test, vi } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { errorAnswer } from "../../api/error.ts";
import { costOf, isExpensive } from "./request-cost.ts";

const NOTHING = { bytesIn: 0, bytesOut: 0, rows: 0, looked: 0, dueTimes: 0 };
const PREVIEW = { method: "POST", json: { schedule: "every minute", tz: "UTC", count: 1_000 } };

describe("the cost of a request", () => {
  test.each([
    ["nothing to speak of", {}, 1],
    ["a small body and a small answer", { bytesIn: 4_000, bytesOut: 4_000 }, 1],
    ["a usual page", { rows: 100, bytesOut: 41_000 }, 2],
    ["a large page", { rows: 1_000, bytesOut: 410_000 }, 26],
    ["a page that is looked for among many rows", { looked: 8_000 }, 16],
    ["many due times", { dueTimes: 1_000, bytesOut: 27_000 }, 50],
    ["the largest body", { bytesIn: 1_048_576 }, 64],
  ])("of %s", (_what, usage, cost) => {
    expect(costOf({ ...NOTHING, ...usage })).toBe(cost);
  });

  test("makes it expensive only by work, not by bytes", () => {
    expect(isExpensive({ ...NOTHING, bytesIn: 1_048_576, bytesOut: 4_194_304 })).toBe(false);
    expect(isExpensive({ ...NOTHING, rows: 499 })).toBe(false);
    expect(isExpensive({ ...NOTHING, rows: 500 })).toBe(true);
    expect(isExpensive({ ...NOTHING, dueTimes: 200 })).toBe(true);
  });
});

describe("a key is charged", () => {
  test("for a preview by its due times: a few use up the burst of 200 small requests", async () => {
    const { key, askWith, clock } = await openKeyedServer({ start: false });
    const own = await key({});
    const statuses: number[] = [];
    const ask = () => askWith(own, "/v1/schedules/preview", PREVIEW);
    // One after the other, so that the limit on requests in flight does not refuse them.
    for (let count = 0; count < 3; count += 1) statuses.push((await ask()).status);
    expect(statuses).toEqual([200, 200, 200]);
    expect((await askWith(own, "/tasks/stats")).status).toBe(200);
    const { status, headers, body } = await ask();
    expect(status).toBe(429);
    expect(errorAnswer.parse(body)).toMatchObject({
      code: "rate_limited",
      retryable: true,
      details: { cost: 50, perSecond: 100, burst: 200 },
    });
    await clock.advance(Number(headers.get("retry-after")) * 1_000);
    expect((await ask()).status).toBe(200);
  });

  test("for the rows that a page has, not for those that were requested", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const own = await key({});
    for (let count = 0; count < 100; count += 1) {
      expect((await askWith(own, "/tasks?limit=1000")).status).toBe(200);
    }
  });

  test("for the rows that were read for a page, also if none of them matches", async () => {
    const { key, askWith, rota } = await openKeyedServer({ start: false });
    const own = await key({});
    await rota.tasks.submitMany(Array.from({ length: 1_000 }, () => ({ payload: null })));
    await rota.lanes.clear("tasks");
    expect((await rota.tasks.counts()).counts).toEqual({ cancelled: 1_000 });
    // 1000 ends that were looked at are two units, as are a hundred rows that were asked for.
    const ask = () => askWith(own, "/tasks?order=completed&lane=nope");
    for (let count = 0; count < 99; count += 1) expect((await ask()).status).toBe(200);
    expect([(await ask()).status, (await ask()).status]).toContain(429);
  });

  test.each([
    { how: "read", method: "GET", path: "", admitted: 13 },
    { how: "waited for", method: "GET", path: "?wait=1", admitted: 13 },
    { how: "explained", method: "GET", path: "/explain", admitted: 3 },
    { how: "retried", method: "POST", path: "/retry", admitted: 3 },
    { how: "submitted again", method: "POST", path: "/submit-again", admitted: 3 },
  ])("for a large task that is $how, before it is read", async ({ method, path, admitted }) => {
    const { key, askWith, rota, storage } = await openKeyedServer({ start: false });
    const own = await key({});
    const { taskId } = await rota.tasks.submit({ payload: "x".repeat(1_048_000) });
    await rota.tasks.cancel(taskId);
    const reads = vi.spyOn(storage.tasks, path === "/explain" ? "situation" : "get");
    const ask = () => askWith(own, `/tasks/${taskId}${path}`, { method });
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await ask()).status));
    expect(statuses.filter((status) => status === 429)).toHaveLength(20 - admitted);
    expect(reads.mock.calls.length).toBeLessThanOrEqual(admitted);
  });

  test("for each task of a batch as for some rows", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const own = await key({});
    const tasks = Array.from({ length: 100 }, () => ({ payload: null }));
    let count = 0;
    while ((await askWith(own, "/tasks/batch", { method: "POST", json: { tasks } })).status === 202)
      count += 1;
    // 400 rows are eight of the 200 units that the key may use at once.
    expect(count).toBe(25);
  });

  test("for each dependency of a task in a batch", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const own = await key({});
    const dependsOn = Array.from({ length: 100 }, (_, index) => `tsk_${String(index).padStart(32, "0")}`);
    const tasks = Array.from({ length: 50 }, () => ({ payload: null, dependsOn }));
    const submit = () => askWith(own, "/tasks/batch", { method: "POST", json: { tasks } });
    expect((await submit()).status).toBe(202);
    // 5200 rows are a hundred units, and the body is more than ten.
    expect((await submit()).body).toMatchObject({ code: "rate_limited", details: { burst: 200 } });
  });

  test("for the tasks that the cancel of a tree reads, for searched events, and for a list of due times", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const countOf = async (path: string, method: "GET" | "POST") => {
      const own = await key({});
      let count = 0;
      while ((await askWith(own, path, { method })).status !== 429) count += 1;
      return count;
    };
    const { body } = await askWith(await key({}), "/tasks", { method: "POST", json: { payload: null } });
    const { taskId } = body as { taskId: string };
    expect(await countOf(`/tasks/${taskId}/cancel?tree=true`, "POST")).toBe(20);
    expect(await countOf("/v1/events?type=task.created", "GET")).toBe(40);
    expect(await countOf("/v1/schedules/upcoming", "GET")).toBe(13);
    expect(await countOf("/v1/schedules/upcoming?limit=2000", "GET")).toBe(1);
  });

  test("for a body that comes without its length", async () => {
    const { key, url } = await openKeyedServer({ start: false });
    const own = await key({});
    const statuses: number[] = [];
    for (let count = 0; count < 14; count += 1) {
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(JSON.stringify({ message: "x".repeat(1_000_000) })));
          controller.close();
        },
      });
      const headers = { authorization: `Bearer ${own}`, "content-type": "application/json" };
      const response = await fetch(`${url}/tasks`, { method: "POST", headers, body, duplex: "half" });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
  });

  test("and few of its expensive requests run at once: the others are refused before any work", async () => {
    const { key, askWith } = await openKeyedServer({
      start: false,
      server: { rateLimit: { perSecond: 10_000, burst: 10_000, maxExpensive: 2 } },
    });
    const [busy, calm] = [await key({}), await key({})];
    const many = await Promise.all(
      Array.from({ length: 10 }, () => askWith(busy, "/v1/schedules/preview", PREVIEW)),
    );
    const refused = many.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(4);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
    expect(errorAnswer.parse(refused[0]?.body)).toMatchObject({ details: { inFlight: 2, max: 2 } });
    // They have ended, and the next can begin.
    expect((await askWith(busy, "/v1/schedules/preview", PREVIEW)).status).toBe(200);
    const { body } = await askWith(calm, "/metrics");
    expect(body).toContain(`rota_requests_refused_total{reason="rate"} ${refused.length}`);
  });
});

test("without keys nothing is charged", async () => {
  const { ask } = await openKeyedServer({ start: false });
  const many = await Promise.all(
    Array.from({ length: 20 }, () => ask("/v1/schedules/preview", { ...PREVIEW })),
  );
  expect(new Set(many.map(({ status }) => status))).toEqual(new Set([200]));
});

test("a refusal for stored bytes has the tenant's own numbers and no Retry-After, and is counted", async () => {
  const { rota, key, askWith } = await openKeyedServer({ start: false });
  const own = await key({ role: "admin" });
  await rota.tenants.update("default", { limits: { maxStoredBytes: 100 } });
  const { status, headers, body } = await askWith(own, "/tasks", { json: { payload: 1 } });
  expect([status, headers.get("retry-after")]).toEqual([429, null]);
  expect(errorAnswer.parse(body)).toEqual({
    code: "quota_exceeded",
    error: expect.stringContaining("`limits.maxStoredBytes`"),
    details: { bytes: expect.any(Number), storedBytes: 0, maxStoredBytes: 100 },
  });
  expect((await askWith(own, "/v1/tenants/default")).body).toMatchObject({
    limits: { maxStoredBytes: 100 },
    storedBytes: 0,
  });
  expect((await askWith(own, "/metrics")).body).toContain('rota_requests_refused_total{reason="quota"} 1');
});

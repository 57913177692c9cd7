import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { openTestServer } from "../support/http.ts";
import { openKeyedServer } from "../support/keyed-server.ts";
import { type Ask, claimOne, claimsWait, registerWorker, submitTask } from "../support/workers.ts";

async function openWorkers() {
  const server = await openKeyedServer();
  const operator = await server.key({ role: "operator" });
  const own = await server.key({ role: "worker", agents: ["py", "reader"] });
  const other = await server.key({ role: "worker", agents: ["py"] });
  const as =
    (key: string): Ask =>
    (path, init) =>
      server.askWith(key, path, init);
  return { ...server, operator: as(operator), own: as(own), other: as(other) };
}

test("a worker's key claims and finishes for its agents, and reads nothing else", async () => {
  const { own, operator } = await openWorkers();
  const worker = await registerWorker(own, { agents: ["py"] });
  const taskId = await submitTask(operator);
  const { attemptToken } = await claimOne(own, worker);
  for (const [path, init] of [
    ["/tasks", {}],
    [`/tasks/${taskId}`, {}],
    ["/tasks", { json: { message: "x" } }],
    ["/v1/workers", {}],
    [`/v1/workers/${worker}`, {}],
    [`/v1/workers/${worker}/drain`, { method: "POST" }],
    ["/v1/agents", {}],
    ["/metrics", {}],
  ] as const) {
    const { status, body } = await own(path, init);
    expect([status, body.code], path).toEqual([403, "forbidden"]);
  }
  const finish = await own(`/v1/attempts/${attemptToken}/finish`, { json: { outcome: "done", result: 1 } });
  expect(finish.body.recorded).toBe(true);
  expect((await operator(`/tasks/${taskId}`)).body).toMatchObject({ state: "done", result: 1 });
  expect((await own(`/v1/workers/${worker}`, { method: "DELETE" })).body).toEqual({ released: [] });
});

test("a worker's key registers its agents only, and not all of them by a star", async () => {
  const { other, operator } = await openWorkers();
  const refused = async (agents: readonly string[]) => {
    const { status, body } = await other("/v1/workers", { json: { name: "w", agents, slots: 1 } });
    return [status, body.error];
  };
  expect(await refused(["reader"])).toEqual([403, expect.stringContaining('"reader"')]);
  expect(await refused(["*"])).toEqual([403, expect.stringContaining("operator")]);
  await registerWorker(operator, { agents: ["*"] });
});

test("another key may not act for a worker, until it registers the same instance", async () => {
  const { own, other, operator } = await openWorkers();
  const instanceId = randomUUID();
  const worker = await registerWorker(own, { agents: ["py"], instanceId });
  await submitTask(operator);
  const { attemptToken } = await claimOne(own, worker);
  const attempts = [{ attemptToken, outcome: "done" }];
  const claim = { claimId: randomUUID(), max: 1 };
  const calls = [
    [`/v1/workers/${worker}/claim`, { json: claim }],
    [`/v1/workers/${worker}/heartbeat`, { json: { attempts: [] } }],
    [`/v1/workers/${worker}/finish`, { json: { attempts } }],
    [`/v1/workers/${worker}`, { method: "DELETE" }],
    [`/v1/attempts/${attemptToken}/heartbeat`, { json: {} }],
    [`/v1/attempts/${attemptToken}/finish`, { json: { outcome: "done" } }],
  ] as const;
  for (const [path, init] of calls) expect((await other(path, init)).status, path).toBe(403);
  expect(await registerWorker(other, { agents: ["py"], instanceId })).toBe(worker);
  expect((await own(`/v1/workers/${worker}/heartbeat`, { json: { attempts: [] } })).status).toBe(403);
  const finish = await other(`/v1/workers/${worker}/finish`, { json: { attempts } });
  expect(finish.body.attempts).toEqual([{ attemptToken, recorded: true }]);
});

test("the tokens of other workers mean nothing, and no list shows any", async () => {
  const { own, other, operator } = await openWorkers();
  const [mine, theirs] = [
    await registerWorker(own, { agents: ["py"] }),
    await registerWorker(other, { agents: ["py"] }),
  ];
  const taskId = await submitTask(operator);
  const { attemptToken } = await claimOne(own, mine);
  const stolen = await other(`/v1/workers/${theirs}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done" }] },
  });
  expect(stolen.body.attempts).toEqual([{ attemptToken, recorded: false, reason: "unknown" }]);
  for (const path of [`/tasks/${taskId}`, "/tasks", "/v1/workers", "/v1/events", `/tasks/${taskId}/logs`])
    expect(JSON.stringify((await operator(path)).body), path).not.toContain(attemptToken);
});

test("workers of one tenant are unknown to another", async () => {
  const { own, key, rota, askWith } = await openWorkers();
  const worker = await registerWorker(own);
  const { id: tenantId } = await rota.tenants.create({ name: "other" });
  const foreign = await key({ role: "operator", tenantId });
  for (const [path, init] of [
    [`/v1/workers/${worker}`, {}],
    [`/v1/workers/${worker}`, { method: "DELETE" }],
    [`/v1/workers/${worker}/drain`, { method: "POST" }],
    [`/v1/workers/${worker}/claim`, { json: { claimId: randomUUID(), max: 1 } }],
  ] as const) {
    const { status, body } = await askWith(foreign, path, init);
    expect([status, body.code], path).toEqual([404, "unknown_worker"]);
  }
  expect((await askWith(foreign, "/v1/workers")).body).toEqual({ workers: [], count: 0, nextCursor: null });
});

test("a key for workers names its agents", async () => {
  const { rota } = await openKeyedServer();
  await expect(rota.keys.create({ role: "worker", name: "w" })).rejects.toThrow("`agents`");
  await expect(rota.keys.create({ role: "operator", name: "w", agents: ["py"] })).rejects.toThrow("`agents`");
  await rota.keys.create({ role: "worker", name: "w", agents: ["py"] });
  expect((await rota.keys.list()).keys).toMatchObject([{ role: "worker", agents: ["py"] }]);
});

test("a key that is deleted while its claim waits gets no task", async () => {
  const { rota, askWith, operator } = await openWorkers();
  const { key: doomed, id } = await rota.keys.create({ role: "worker", agents: ["py"], name: "doomed" });
  const as: Ask = (path, init) => askWith(doomed, path, init);
  const worker = await registerWorker(as);
  const waiting = as(`/v1/workers/${worker}/claim`, { json: { claimId: randomUUID(), max: 1, waitS: 25 } });
  await claimsWait(operator, 1);
  await rota.keys.delete(id);
  const taskId = await submitTask(operator);
  expect(await waiting).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  expect((await operator(`/tasks/${taskId}`)).body).toMatchObject({ state: "queued", attempts: [] });
});

test("each worker has a rate limit of its own, and made-up workers have that of the key", async () => {
  const rateLimit = { perSecond: 1, burst: 12, maxExpensive: 4 };
  const server = await openKeyedServer({ server: { rateLimit } });
  const key = await server.key({ role: "worker", agents: ["py"] });
  const ask: Ask = (path, init) => server.askWith(key, path, init);
  const [one, two] = [await registerWorker(ask), await registerWorker(ask)];
  const beat = async (worker: string) =>
    (await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: [] } })).status;
  for (const worker of [one, two]) expect(await beat(worker)).toBe(200);
  const statuses: number[] = [];
  for (let time = 0; time < 20; time += 1) statuses.push(await beat(one));
  expect(statuses.filter((status) => status === 200)).toHaveLength(12);
  expect(await beat(two)).toBe(200);
  const made: number[] = [];
  for (let time = 0; time < 20; time += 1) made.push(await beat(`wrk_${time}`));
  expect(made.at(-1)).toBe(429);
});

test("calls that name an attempt count for its worker, also the first one", async () => {
  const rateLimit = { perSecond: 1, burst: 12, maxExpensive: 4 };
  const server = await openKeyedServer({ server: { rateLimit } });
  const operator = await server.key({ role: "operator" });
  const key = await server.key({ role: "worker", agents: ["py"] });
  const ask: Ask = (path, init) => server.askWith(key, path, init);
  const worker = await registerWorker(ask);
  await submitTask((path, init) => server.askWith(operator, path, init));
  const { attemptToken } = await claimOne(ask, worker);
  const statuses: number[] = [];
  for (let time = 0; time < 20; time += 1)
    statuses.push((await ask(`/v1/attempts/${attemptToken}/heartbeat`, { json: {} })).status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(12);
  // The key has paid for a registration and a claim.
  const left: number[] = [];
  for (let time = 0; time < 11; time += 1)
    left.push((await ask(`/v1/attempts/att_made-up-${time}/heartbeat`, { json: {} })).status);
  expect(left).toEqual([...Array<number>(10).fill(404), 429]);
});

test("a heartbeat costs as much as the attempts that it names", async () => {
  const rateLimit = { perSecond: 1, burst: 25, maxExpensive: 4 };
  const server = await openKeyedServer({ server: { rateLimit } });
  const key = await server.key({ role: "worker", agents: ["py"] });
  const ask: Ask = (path, init) => server.askWith(key, path, init);
  const worker = await registerWorker(ask);
  const beat = async (count: number) => {
    const attempts = Array.from({ length: count }, (_, n) => ({ attemptToken: `att_${n}` }));
    return (await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts } })).status;
  };
  expect(await beat(1)).toBe(200);
  expect([await beat(450), await beat(450), await beat(450)]).toEqual([200, 200, 429]);
  expect(await beat(1)).toBe(200);
});

test("the audit log has when workers came and went, and not what they do all the time", async () => {
  const server = await openKeyedServer();
  const admin = await server.key({ role: "admin" });
  const key = await server.key({ role: "worker", agents: ["py"] });
  const ask: Ask = (path, init) => server.askWith(key, path, init);
  const worker = await registerWorker(ask);
  await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: [] } });
  await ask(`/v1/workers/${worker}`, { method: "DELETE" });
  const { entries } = (await server.askWith(admin, "/v1/audit")).body;
  const ofWorkers = entries.filter(({ route }: { route: string }) => route.includes("workers"));
  expect(ofWorkers.map(({ route, subject }: Record<string, string>) => [route, subject])).toEqual([
    ["DELETE /v1/workers/{id}", worker],
    ["POST /v1/workers", worker],
  ]);
});

test("the log of a request that fails has no token", async () => {
  const { ask, log } = await openTestServer({
    meddler: {
      before({ operation }) {
        if (operation === "workers.attempts") throw new Error("broken");
      },
    },
  });
  const { status } = await ask("/v1/attempts/att_secret-token/finish", { json: { outcome: "done" } });
  expect(status).toBe(500);
  expect(JSON.stringify(log.lines)).toContain("/v1/attempts/…/finish");
  expect(JSON.stringify(log.lines)).not.toContain("secret-token");
});

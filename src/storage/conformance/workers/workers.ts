import { describe, expect, test } from "vitest";
import {
  NOT_POLLING_MS,
  TENANT_WORKERS_MAX,
  TENANT_WORKERS_MIN,
  WORKERS_MAX,
} from "../../../model/worker.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import {
  type Abilities,
  AGENT_MEMORY_MS,
  AGENTS_SEEN_MAX,
  type AssignedTask,
  CLAIM_KEPT_MS,
  LOST_WORKERS_MAX,
  type NewWorker,
  WORKER_KEPT_MS,
  type WorkerExchange,
  type WorkerPoll,
} from "../../storage.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import {
  AGENT,
  customSpec,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  OTHER_NODE,
  only,
  TENANT,
  type World,
} from "../world.ts";

const LEASE_MS = 15_000;
const NOTHING: Abilities = { agents: new Map(), kinds: [] };

let lastId = 0;

export function newWorker(overrides: Partial<NewWorker> = {}): NewWorker {
  lastId += 1;
  return {
    id: `wrk_${lastId}`,
    tenant: TENANT,
    instance: null,
    key: null,
    name: "py",
    agents: [AGENT],
    slots: 10,
    labels: {},
    version: null,
    runtime: null,
    leaseMs: LEASE_MS,
    heartbeatMs: 5_000,
    ...overrides,
  };
}

export function newPoll(worker: string, overrides: Partial<WorkerPoll> = {}): WorkerPoll {
  lastId += 1;
  const tokens = Array.from({ length: 10 }, (_, n) => ({
    hash: `hash-${lastId}-${n}`,
    nonce: `n-${lastId}-${n}`,
  }));
  return { worker, claim: `claim-${lastId}`, max: 10, agents: null, tokens, ...overrides };
}

/** Nodes that execute nothing, so that only workers do. */
export async function openForWorkers(openWorld: OpenWorld): Promise<World> {
  const world = await openWorld();
  for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities: NOTHING });
  return world;
}

export async function registerWorker(world: World, overrides: Partial<NewWorker> = {}): Promise<string> {
  const registered = await world.storage.workers.register(newWorker(overrides));
  if (!("id" in registered)) throw new Error("The worker was not registered.");
  return registered.id;
}

function exchange(world: World, ...polls: WorkerPoll[]): Promise<WorkerExchange> {
  return world.storage.workers.exchange({ finishes: [], progress: [], polls });
}

async function claimIds(world: World, ...polls: WorkerPoll[]): Promise<(string[] | null)[]> {
  const { claimed } = await exchange(world, ...polls);
  return claimed.map((tasks) => tasks?.map(({ task }) => task.id) ?? null);
}

export async function loseWorker(world: World, worker: string): Promise<readonly string[] | null> {
  const { workers } = await world.storage.workers.watch();
  const beat = workers.find((each) => each.worker === worker)?.beat ?? -1;
  return world.storage.workers.markLost({ worker, beat });
}

export function describeWorkers(openWorld: OpenWorld): void {
  describe("workers", () => {
    test("a worker is listed with what it registered, and an instance keeps its id", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const instance = "8a0b7e0e-0000-4000-8000-000000000001";
      const id = await registerWorker(world, { instance, key: "key_1", labels: { gpu: "a100" } });
      const again = await workers.register(
        newWorker({ instance, key: "key_2", agents: ["writer", "reader"], slots: 3, version: "2" }),
      );
      expect(again).toEqual({ id, isNew: false });
      expect(await workers.list({ tenant: TENANT })).toEqual([
        {
          ...newWorker({ instance, key: "key_2", agents: ["writer", "reader"], slots: 3, version: "2" }),
          id,
          labels: {},
          draining: false,
          lost: false,
          registeredAt: world.clock.now(),
          seenAt: world.clock.now(),
          polledAt: null,
          held: 0,
          done: 0,
          failed: 0,
        },
      ]);
      expect(await workers.list({ tenant: "other" })).toEqual([]);
      expect(await workers.get({ tenant: "other", id })).toBeNull();
      expect(await workers.get({ tenant: TENANT, id })).toMatchObject({ slots: 3 });
    });

    test("workers are listed page by page, those for an agent alone, and counted by state", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const b2 = await registerWorker(world, { id: "wrk_b2", name: "b", agents: ["other"], slots: 1 });
      const b1 = await registerWorker(world, { id: "wrk_b1", name: "b", agents: ["*"], slots: 2 });
      const a = await registerWorker(world, { id: "wrk_a", name: "a", slots: 4 });
      const upper = await registerWorker(world, { id: "wrk_u", name: "B", slots: 8 });
      await registerWorker(world, { tenant: "other" });
      const ids = async (params: Partial<Parameters<typeof workers.list>[0]> = {}) =>
        (await workers.list({ tenant: TENANT, ...params })).map(({ id }) => id);
      expect(await ids()).toEqual([upper, a, b1, b2]);
      expect(await ids({ limit: 2 })).toEqual([upper, a]);
      expect(await ids({ limit: 2, after: { name: "a", id: a } })).toEqual([b1, b2]);
      expect(await ids({ after: { name: "b", id: b1 } })).toEqual([b2]);
      expect(await ids({ agents: [AGENT, "*"] })).toEqual([upper, a, b1]);
      expect(await ids({ agents: [AGENT, "*"], after: { name: "a", id: a }, limit: 5 })).toEqual([b1]);
      await world.submit({ id: "t" });
      await exchange(world, newPoll(a));
      await loseWorker(world, upper);
      await workers.drain({ tenant: TENANT, id: b2 });
      expect(await ids({ agents: [AGENT, "*"] })).toEqual([a, b1]);
      const counts = () => workers.count({ tenant: TENANT });
      const constant = [
        { state: "draining", count: 1, slots: 1, held: 0 },
        { state: "lost", count: 1, slots: 8, held: 0 },
      ];
      expect(await counts()).toEqual([
        { state: "busy", count: 1, slots: 4, held: 1 },
        constant[0],
        { state: "idle", count: 1, slots: 2, held: 0 },
        constant[1],
      ]);
      world.clock.step(NOT_POLLING_MS);
      expect(await counts()).toHaveLength(4);
      world.clock.step(1);
      await workers.renew({ signs: [{ worker: b1, polls: true }] });
      expect(await counts()).toEqual([
        constant[0],
        { state: "idle", count: 1, slots: 2, held: 0 },
        constant[1],
        { state: "not_polling", count: 1, slots: 4, held: 1 },
      ]);
      expect(await workers.count({ tenant: "none" })).toEqual([]);
    });

    test("there are at most so many live workers, and a tenant has half of them once there is a second, also when it comes back", async () => {
      const world = await openForWorkers(openWorld);
      const { workers, tenants, notifications } = world.storage;
      const instance = "8a0b7e0e-0000-4000-8000-000000000003";
      const first = await registerWorker(world, { instance });
      // Half of them, and one more: there is only one tenant.
      await Promise.all(Array.from({ length: TENANT_WORKERS_MAX }, () => registerWorker(world)));
      await tenants.create({ id: "other", name: "other", limits: UNBOUNDED });
      const notified = await notifications.range();
      expect(await workers.register(newWorker())).toEqual({ full: "tenant" });
      expect(await notifications.range()).toEqual(notified);
      expect(await workers.register(newWorker({ instance }))).toEqual({ id: first, isNew: false });
      const ofOther = () => workers.register(newWorker({ tenant: "other" }));
      const left = WORKERS_MAX - TENANT_WORKERS_MAX - 1;
      const [far] = await Promise.all(Array.from({ length: left }, ofOther));
      expect(await ofOther()).toEqual({ full: "installation" });
      await loseWorker(world, first);
      expect(await ofOther()).toMatchObject({ isNew: true });
      // A lost worker counts again from the moment that it comes back.
      expect(await workers.register(newWorker({ instance }))).toEqual({ full: "installation" });
      const sign = { worker: first, polls: true };
      expect(await workers.renew({ signs: [sign] })).toEqual({ unknown: [first] });
      expect(await workers.get({ tenant: TENANT, id: first })).toMatchObject({ lost: true });
      if (far === undefined || !("id" in far)) throw new Error("It was registered.");
      await loseWorker(world, far.id);
      // It still has its half.
      expect(await workers.renew({ signs: [sign] })).toEqual({ unknown: [first] });
      const { workers: watched } = await workers.watch();
      const own = watched.find(({ worker, tenant }) => tenant === TENANT && worker !== first);
      await loseWorker(world, own?.worker ?? "");
      expect(await workers.renew({ signs: [sign] })).toEqual({ unknown: [] });
      expect(await workers.get({ tenant: TENANT, id: first })).toMatchObject({ lost: false });
    });

    test("the first workers of a tenant find room, however many others have", async () => {
      const world = await openForWorkers(openWorld);
      const { workers, tenants } = world.storage;
      await Promise.all(Array.from({ length: WORKERS_MAX }, () => registerWorker(world)));
      expect(await workers.register(newWorker())).toEqual({ full: "installation" });
      for (const id of ["second", "third"]) {
        await tenants.create({ id, name: id, limits: UNBOUNDED });
        const ids: string[] = [];
        for (let n = 0; n < TENANT_WORKERS_MIN; n += 1) ids.push(await registerWorker(world, { tenant: id }));
        expect(await workers.register(newWorker({ tenant: id }))).toEqual({ full: "installation" });
        await loseWorker(world, ids[0] ?? "");
        expect(await workers.renew({ signs: [{ worker: ids[0] ?? "", polls: true }] })).toEqual({
          unknown: [],
        });
      }
    });

    test("a worker that is registered again, drained or removed is signalled", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const signalled: unknown[] = [];
      world.storage.subscribe((signal) => signal.kind === "workers" && signalled.push(signal));
      const instance = "8a0b7e0e-0000-4000-8000-000000000004";
      const id = await registerWorker(world, { instance });
      expect(signalled).toEqual([]);
      await registerWorker(world, { instance });
      await workers.drain({ tenant: TENANT, id });
      await workers.drain({ tenant: "other", id });
      await workers.remove({ tenant: TENANT, id });
      expect(signalled).toEqual(Array(3).fill({ kind: "workers", ids: [id] }));
    });

    test("attempts that Rota ends are signalled as fenced, and those that their worker ends are not", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const worker = await registerWorker(world, { slots: 3 });
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      const [a, b, c] = (await exchange(world, newPoll(worker))).claimed[0] ?? [];
      if (a === undefined || b === undefined || c === undefined) throw new Error("Three were claimed.");
      const fenced: number[] = [];
      world.storage.subscribe((signal) => signal.kind === "fenced" && fenced.push(...signal.tokens));
      const end = ({ token, task: { seq } }: AssignedTask, recorded: boolean) =>
        workers.exchange({
          finishes: [{ worker, recorded, seq, token, settlement: { to: "failed", error: "no" } }],
          progress: [],
          polls: [],
        });
      await end(a, true);
      expect(fenced).toEqual([]);
      await end(b, false);
      expect(fenced).toEqual([b.token]);
      await workers.takeBack({ worker, limit: 10, counted: false, maxLost: 5, error: "gone" });
      expect(fenced).toEqual([b.token, c.token]);
      const found = await workers.attempts({ tokens: [c.token, 1, b.token] });
      expect(found).toMatchObject([
        { token: c.token, taskId: "c", held: false },
        { token: b.token, taskId: "b", held: false, recorded: false },
      ]);
    });

    test("the same instance of another tenant is another worker", async () => {
      const world = await openForWorkers(openWorld);
      const instance = "8a0b7e0e-0000-4000-8000-000000000002";
      const one = await registerWorker(world, { instance });
      expect(await registerWorker(world, { instance, tenant: "other" })).not.toBe(one);
    });

    test("tasks of an agent that a worker names go to the worker, and to no node", async () => {
      const world = await openForWorkers(openWorld);
      const abilities: Abilities = { agents: new Map(), kinds: ["custom"] };
      for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities });
      const worker = await registerWorker(world);
      await world.submit({ id: "w" }, { id: "n", agent: "local" });
      expect((await world.claim({ limit: 5 })).map(({ task }) => task.id)).toEqual(["n"]);
      const { claimed } = await exchange(world, newPoll(worker));
      const assigned = only(only(claimed) ?? []);
      expect(assigned.task).toMatchObject({
        id: "w",
        state: "assigned",
        startedAt: null,
        attempts: [{ number: 1, node: worker, endedAt: null }],
      });
      expect(await world.task("w")).toMatchObject({
        state: "assigned",
        attempts: [{ number: 1, node: worker }],
      });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("tasks that waited before the worker came go to it", async () => {
      const world = await openForWorkers(openWorld);
      const [inserted] = await world.submit({ id: "w" });
      expect(inserted).toMatchObject({ unserved: true });
      const worker = await registerWorker(world);
      await world.submit({ id: "later" });
      expect(await claimIds(world, newPoll(worker))).toEqual([["w", "later"]]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a worker of another tenant gets none of them", async () => {
      const world = await openForWorkers(openWorld);
      await registerWorker(world);
      const other = await registerWorker(world, { tenant: "other" });
      await world.submit({ id: "w" });
      expect(await claimIds(world, newPoll(other))).toEqual([[]]);
    });

    test("a worker gets tasks of its agents only, and of those that the poll names", async () => {
      const world = await openForWorkers(openWorld);
      const writer = await registerWorker(world, { agents: ["writer", "reader"] });
      await registerWorker(world, { agents: ["third"] });
      await world.submit(
        { id: "w", agent: "writer" },
        { id: "r", agent: "reader" },
        { id: "t", agent: "third" },
      );
      expect(await claimIds(world, newPoll(writer, { agents: ["reader"], except: ["reader"] }))).toEqual([
        [],
      ]);
      expect(await claimIds(world, newPoll(writer, { except: ["writer"], max: 1 }))).toEqual([["r"]]);
      await world.submit({ id: "r2", agent: "reader" });
      expect(await claimIds(world, newPoll(writer, { agents: ["reader"] }))).toEqual([["r2"]]);
      expect(await claimIds(world, newPoll(writer))).toEqual([["w"]]);
    });

    test("an unknown, a lost or a draining worker gets nothing", async () => {
      const world = await openForWorkers(openWorld);
      const lost = await registerWorker(world);
      const draining = await registerWorker(world);
      await world.submit({ id: "w" });
      expect(await loseWorker(world, lost)).toEqual([AGENT]);
      expect(await world.storage.workers.drain({ tenant: TENANT, id: draining })).toBe(true);
      expect(await world.storage.workers.drain({ tenant: "other", id: draining })).toBe(false);
      expect(await claimIds(world, newPoll("unknown"), newPoll(lost), newPoll(draining))).toEqual([
        null,
        null,
        [],
      ]);
      expect(await world.storage.workers.get({ tenant: TENANT, id: draining })).toMatchObject({
        draining: true,
      });
    });

    test("a poll gets no more than it wants, has tokens for, or its worker has slots for", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world, { slots: 3 });
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const { tokens } = newPoll(worker);
      expect(await claimIds(world, newPoll(worker, { max: 1 }))).toEqual([["a"]]);
      expect(await claimIds(world, newPoll(worker, { tokens: tokens.slice(0, 1) }))).toEqual([["b"]]);
      expect(await claimIds(world, newPoll(worker), newPoll(worker))).toEqual([["c"], []]);
      expect(await world.storage.workers.get({ tenant: TENANT, id: worker })).toMatchObject({ held: 3 });
    });

    test("of several polls the worker that holds the fewest gets the next, then the longest waiting", async () => {
      const world = await openForWorkers(openWorld);
      const [one, two] = [await registerWorker(world), await registerWorker(world)];
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      expect(await claimIds(world, newPoll(two), newPoll(one))).toEqual([["a", "c"], ["b"]]);
      await world.submit({ id: "d" }, { id: "e" });
      expect(await claimIds(world, newPoll(two), newPoll(one))).toEqual([["e"], ["d"]]);
    });

    test("the same claim gets its live attempts again and no others, from then on a new one", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a" }, { id: "b" });
      const poll = newPoll(worker, { max: 1 });
      const first = await exchange(world, poll);
      const repeated = await exchange(world, { ...poll, tokens: newPoll(worker).tokens });
      expect(repeated.claimed).toEqual(first.claimed);
      const { token, task } = only(first.claimed[0] ?? []);
      await world.storage.workers.exchange({
        finishes: [{ worker, recorded: true, seq: task.seq, token, settlement: { to: "done", result: 1 } }],
        progress: [],
        polls: [],
      });
      expect(await claimIds(world, { ...poll, tokens: newPoll(worker).tokens })).toEqual([["b"]]);
    });

    test("ends and claims are one step, and only the holder can end", async () => {
      const world = await openForWorkers(openWorld);
      const [worker, other] = [await registerWorker(world), await registerWorker(world)];
      await world.configureLane(LANE, { total: 1 });
      await world.submit({ id: "a" }, { id: "b" });
      const firstPoll = newPoll(worker);
      const first = await exchange(world, firstPoll);
      const { token, task } = only(first.claimed[0] ?? []);
      expect(first.held).toBe(true);
      const settlement = { to: "done", result: { ok: true } } as const;
      const usage = { inputTokens: 3, outputTokens: 4 };
      const stolen = await world.storage.workers.exchange({
        finishes: [{ worker: other, recorded: true, seq: task.seq, token, settlement }],
        progress: [],
        polls: [newPoll(other)],
      });
      expect(stolen).toMatchObject({ finished: [], claimed: [[]] });
      expect(await world.task("a")).toMatchObject({ state: "assigned" });
      const own = await world.storage.workers.exchange({
        finishes: [{ worker, recorded: true, seq: task.seq, token, settlement, usage }],
        progress: [],
        polls: [newPoll(other)],
      });
      expect(own.finished).toEqual([{ token, state: "done" }]);
      expect(own.claimed[0]?.map((assigned) => assigned.task.id)).toEqual(["b"]);
      await own.durable;
      expect(await world.task("a")).toMatchObject({ state: "done", result: { ok: true }, usage });
      const late = await world.storage.workers.exchange({
        finishes: [{ worker, recorded: true, seq: task.seq, token, settlement }],
        progress: [],
        polls: [],
      });
      expect(late.finished).toEqual([]);
      const { tokens } = firstPoll;
      expect(await world.storage.workers.attempts({ hashes: [tokens[0]?.hash ?? ""] })).toMatchObject([
        { held: false, recorded: true },
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a worker that names an attempt runs it, and its reports become events", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a" });
      const poll = newPoll(worker);
      const { token, task } = only((await exchange(world, poll)).claimed[0] ?? []);
      const hash = poll.tokens[0]?.hash ?? "";
      expect(await world.storage.workers.name({ worker, attempts: [{ hash }], all: true })).toEqual({
        dropped: [],
      });
      expect(await world.task("a")).toMatchObject({ state: "running" });
      await world.storage.workers.exchange({
        finishes: [],
        progress: [{ worker, seq: task.seq, token, progress: { percent: 50 } }],
        polls: [],
      });
      const reported = (await world.events()).find(({ type }) => type === "task.progress");
      expect(reported).toMatchObject({ taskId: "a", data: { progress: { percent: 50 }, attempt: 1 } });
    });

    test("an attempt that its worker named and leaves out twice in a row is dropped", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a" }, { id: "b" });
      const poll = newPoll(worker);
      const [a, b] = (await exchange(world, poll)).claimed[0] ?? [];
      const [first, second] = poll.tokens.map(({ hash }) => ({ hash }));
      if (first === undefined || second === undefined || a === undefined || b === undefined)
        throw new Error("Two were claimed.");
      const name = (attempts: { hash: string }[], all = true) =>
        world.storage.workers.name({ worker, attempts, all });
      expect(await name([first])).toEqual({ dropped: [] });
      expect(await name([first])).toEqual({ dropped: [] });
      await name([first, second]);
      expect(await name([first])).toEqual({ dropped: [] });
      expect(await name([first], false)).toEqual({ dropped: [] });
      await name([second], false);
      expect(await name([first])).toEqual({ dropped: [] });
      expect(await name([first])).toEqual({ dropped: [{ seq: b.task.seq, token: b.token }] });
    });

    test("the usage of an attempt never gets smaller", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a" });
      const poll = newPoll(worker);
      await exchange(world, poll);
      const hash = poll.tokens[0]?.hash ?? "";
      const report = (inputTokens: number, outputTokens: number) =>
        world.storage.workers.name({
          worker,
          attempts: [{ hash, usage: { inputTokens, outputTokens } }],
          all: false,
        });
      await report(10, 5);
      await report(8, 7);
      expect(await world.storage.workers.attempts({ hashes: [hash] })).toMatchObject([
        { usage: { inputTokens: 10, outputTokens: 7 } },
      ]);
    });

    test("attempts are found by the hash of their token, held or not, for a while", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const worker = await registerWorker(world);
      await world.submit({ id: "a" });
      const poll = newPoll(worker);
      const { token, task } = only((await exchange(world, poll)).claimed[0] ?? []);
      const hash = poll.tokens[0]?.hash ?? "";
      const found = {
        hash,
        worker,
        tenant: TENANT,
        taskId: "a",
        seq: task.seq,
        token,
        number: 1,
        usage: null,
        recorded: false,
      };
      expect(await workers.attempts({ hashes: ["unknown", hash] })).toEqual([{ ...found, held: true }]);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      expect(await workers.attempts({ hashes: [hash] })).toEqual([{ ...found, held: false }]);
      await workers.prune();
      world.clock.step(CLAIM_KEPT_MS - 1);
      await workers.prune();
      expect(await workers.attempts({ hashes: [hash] })).toHaveLength(1);
      world.clock.step(1);
      await workers.prune();
      expect(await workers.attempts({ hashes: [hash] })).toEqual([]);
    });

    test("a worker that gave a sign of life is not lost; one that was lost comes back with its next sign", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const worker = await registerWorker(world);
      const { workers: watched } = await workers.watch();
      const beat = only(watched).beat;
      expect(watched).toEqual([
        {
          ...{ worker, tenant: TENANT, name: "py", beat, lost: false, leaseMs: LEASE_MS, held: 0, slots: 10 },
          ...{ draining: false, registeredAt: world.clock.now(), polledAt: null },
        },
      ]);
      world.clock.step(1_000);
      expect(
        await workers.renew({
          signs: [
            { worker, polls: true },
            { worker: "unknown", polls: false },
          ],
        }),
      ).toEqual({
        unknown: ["unknown"],
      });
      expect(await workers.get({ tenant: TENANT, id: worker })).toMatchObject({
        seenAt: world.clock.now(),
        polledAt: world.clock.now(),
      });
      expect(await workers.markLost({ worker, beat })).toBeNull();
      expect(await loseWorker(world, worker)).toEqual([AGENT]);
      expect(await loseWorker(world, worker)).toBeNull();
      expect(await workers.watch()).toEqual({ workers: [], any: true, nextDueAt: null });
      await world.submit({ id: "a" });
      expect((await world.storage.tasks.situation({ tenant: TENANT, id: "a" }))?.noExecutor).toEqual({
        served: true,
        byWorkers: true,
        lastSeenAt: world.clock.now(),
        since: null,
      });
      await workers.renew({ signs: [{ worker, polls: false }] });
      expect((await world.storage.tasks.situation({ tenant: TENANT, id: "a" }))?.noExecutor).toBeNull();
      expect(await claimIds(world, newPoll(worker))).toEqual([["a"]]);
    });

    test("the agents of workers that are gone are known and served for a while", async () => {
      const world = await openForWorkers(openWorld);
      const { agents, workers } = world.storage;
      const worker = await registerWorker(world, { agents: ["far"] });
      expect(await agents.isKnown({ tenant: TENANT, agent: "far" })).toBe(true);
      expect(await agents.isKnown({ tenant: "other", agent: "far" })).toBe(false);
      expect(await agents.knownNames({ tenant: TENANT, limit: 10 })).toContain("far");
      expect(await workers.remove({ tenant: "other", id: worker })).toBe(false);
      expect(await workers.remove({ tenant: TENANT, id: worker })).toBe(true);
      expect(await workers.list({ tenant: TENANT })).toEqual([]);
      expect(await agents.isKnown({ tenant: TENANT, agent: "far" })).toBe(true);
      expect(await agents.knownNames({ tenant: TENANT, limit: 10 })).toContain("far");
      await world.submit({ id: "a", agent: "far" });
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 })).toMatchObject({ failed: [] });
      world.clock.step(AGENT_MEMORY_MS);
      await agents.forget();
      expect(await agents.isKnown({ tenant: TENANT, agent: "far" })).toBe(false);
      await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 });
      await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 });
      expect(await world.task("a")).toMatchObject({
        state: "failed",
        error: noExecutorError("far", "custom"),
      });
    });

    test("of the agents of workers that are gone a tenant has those that were named last", async () => {
      const world = await openForWorkers(openWorld);
      const { agents, workers } = world.storage;
      const instance = "8a0b7e0e-0000-4000-8000-000000000005";
      const gone = await registerWorker(world, { tenant: "other", agents: ["kept"] });
      await workers.remove({ tenant: "other", id: gone });
      await registerWorker(world, { instance, agents: ["oldest", "still named"] });
      await registerWorker(world, { agents: ["still named"] });
      await world.submit({ id: "a", agent: "oldest" }, { id: "b", agent: "still named" });
      const lists = AGENTS_SEEN_MAX / 100;
      const names = (list: number) => Array.from({ length: 100 }, (_, n) => `agent ${list} ${n}`);
      for (let list = 0; list < lists; list += 1) {
        world.clock.step(1);
        await registerWorker(world, { instance, agents: names(list) });
        expect(await agents.isKnown({ tenant: TENANT, agent: "oldest" })).toBe(true);
      }
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 })).toMatchObject({ failed: [] });
      world.clock.step(1);
      await registerWorker(world, { instance, agents: ["last"] });
      for (const agent of ["still named", "agent 0 0", `agent ${lists - 1} 99`, "last"])
        expect(await agents.isKnown({ tenant: TENANT, agent })).toBe(true);
      expect(await agents.isKnown({ tenant: TENANT, agent: "oldest" })).toBe(false);
      expect(await agents.isKnown({ tenant: "other", agent: "kept" })).toBe(true);
      await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 });
      await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 });
      expect(await world.task("a")).toMatchObject({ state: "failed" });
      expect(await world.task("b")).toMatchObject({ state: "queued" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a lost worker is listed for an hour", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await loseWorker(world, worker);
      world.clock.step(WORKER_KEPT_MS - 1);
      await world.storage.workers.prune();
      expect(await world.storage.workers.list({ tenant: TENANT })).toMatchObject([{ lost: true }]);
      world.clock.step(1);
      await world.storage.workers.prune();
      expect(await world.storage.workers.list({ tenant: TENANT })).toEqual([]);
    });

    test("of the lost workers of a tenant those seen last are kept", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const loseAll = async () => {
        const { workers: watched } = await workers.watch();
        await Promise.all(watched.filter(({ lost }) => !lost).map(workers.markLost));
      };
      const [busy, other] = [await registerWorker(world), await registerWorker(world, { tenant: "other" })];
      await world.submit({ id: "a" });
      await exchange(world, newPoll(busy));
      const oldest = await registerWorker(world);
      await loseAll();
      world.clock.step(1);
      const later = await Promise.all(Array.from({ length: LOST_WORKERS_MAX }, () => registerWorker(world)));
      await loseAll();
      await workers.prune();
      const left = [
        ...(await workers.list({ tenant: TENANT })),
        ...(await workers.list({ tenant: "other" })),
      ];
      expect(left.map(({ id }) => id).toSorted()).toEqual([busy, other, ...later].toSorted());
      expect(left.map(({ id }) => id)).not.toContain(oldest);
    });

    test("what a worker did not name goes back without a retry, what it ran is a retry, and all are losses", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit(
        { id: "assigned", maxRetriesIfLost: 0 },
        { id: "ran", maxRetriesIfLost: 1 },
        { id: "last", maxRetriesIfLost: 0 },
      );
      const poll = newPoll(worker);
      await exchange(world, poll);
      const attempts = poll.tokens.slice(1, 3).map(({ hash }) => ({ hash }));
      await world.storage.workers.name({ worker, attempts, all: true });
      await loseWorker(world, worker);
      expect((await world.storage.workers.watch()).workers).toMatchObject([{ worker, lost: true, held: 3 }]);
      const taken = await world.storage.workers.takeBack({
        worker,
        limit: 10,
        counted: true,
        maxLost: 5,
        error: "worker lost",
      });
      expect(taken.requeued.map(({ id }) => id)).toEqual(["assigned", "ran"]);
      expect(taken.failed).toEqual([{ id: "last", tenant: TENANT, agent: AGENT, lane: LANE }]);
      expect(await world.task("assigned")).toMatchObject({
        state: "queued",
        retryCount: 0,
        attempts: [{ outcome: "lost", error: "worker lost", node: worker }],
      });
      expect(await world.task("ran")).toMatchObject({ state: "queued", retryCount: 1 });
      expect(await world.task("last")).toMatchObject({ state: "failed", error: "worker lost" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a task that loses its workers runs alone, and fails in the end", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world, { slots: 3 });
      await world.submit({ id: "poison" });
      const back = () =>
        world.storage.workers.takeBack({ worker, limit: 10, counted: false, maxLost: 3, error: "released" });
      for (let time = 1; time <= 2; time += 1) {
        expect(await claimIds(world, newPoll(worker))).toEqual([["poison"]]);
        await back();
      }
      await world.submit({ id: "a", priority: 0 }, { id: "b" });
      expect(await claimIds(world, newPoll(worker, { max: 1 }))).toEqual([["a"]]);
      expect(await claimIds(world, newPoll(worker, { max: 1 }))).toEqual([["b"]]);
      expect(await claimIds(world, newPoll(worker))).toEqual([[]]);
      const other = await registerWorker(world, { slots: 3 });
      await world.submit({ id: "c", lane: OTHER_LANE });
      const mixed = await claimIds(world, newPoll(other));
      expect(mixed).toEqual([["poison"]]);
      expect(await claimIds(world, newPoll(other))).toEqual([[]]);
      const lost = await world.storage.workers.takeBack({
        worker: other,
        limit: 10,
        counted: false,
        maxLost: 3,
        error: "released",
      });
      expect(lost.failed.map(({ id }) => id)).toEqual(["poison"]);
      expect(await world.task("poison")).toMatchObject({ state: "failed", error: "lost 3 times" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("attempts that a worker did not get are no loss and leave no trace, and those that it has named stay", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a", maxRetriesIfLost: 0 });
      const before = await world.events();
      const fenced: number[] = [];
      world.storage.subscribe((signal) => signal.kind === "fenced" && fenced.push(...signal.tokens));
      for (let time = 1; time <= 6; time += 1) {
        const { token, task } = only((await exchange(world, newPoll(worker))).claimed[0] ?? []);
        const attempts = [{ seq: task.seq, token }];
        await world.storage.workers.takeBack({
          worker,
          attempts,
          limit: 10,
          counted: false,
          error: "not delivered",
        });
      }
      expect(await world.task("a")).toMatchObject({
        state: "queued",
        retryCount: 0,
        attempts: [],
        startedAt: null,
      });
      expect(await world.events()).toEqual(before);
      expect(fenced).toEqual([]);
      await world.submit({ id: "b" });
      const poll = newPoll(worker);
      const [a, b] = (await exchange(world, poll)).claimed[0] ?? [];
      if (a === undefined || b === undefined) throw new Error("Two were claimed.");
      expect(a.task.attempts).toMatchObject([{ number: 1 }]);
      await world.storage.workers.name({
        worker,
        attempts: [{ hash: poll.tokens[0]?.hash ?? "" }],
        all: true,
      });
      await world.storage.workers.takeBack({ worker, limit: 10, counted: false, error: "not delivered" });
      expect(await world.task("a")).toMatchObject({
        state: "running",
        attempts: [{ number: 1, endedAt: null }],
      });
      expect(await world.task("b")).toMatchObject({ state: "queued", attempts: [] });
      const types = (await world.events())
        .slice(before.length)
        .map(({ type, taskId }) => `${type} ${taskId}`);
      expect(types).toEqual(["task.created b", "task.started a"]);
      expect(fenced).toEqual([]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("how attempts ended is read without their tasks", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const worker = await registerWorker(world);
      await world.submit({ id: "a" });
      const poll = newPoll(worker);
      const { token, task } = only((await exchange(world, poll)).claimed[0] ?? []);
      const { seq } = task;
      const first = { seq, number: 1 };
      expect(await workers.ends({ attempts: [] })).toEqual([]);
      expect(await workers.ends({ attempts: [first] })).toEqual([null]);
      const end = { attempts: [{ seq, token }], limit: 1, counted: false, maxLost: 5, recorded: true };
      await workers.takeBack({ worker, ...end, error: "released" });
      const released = { outcome: "lost", error: "released" };
      expect(await workers.ends({ attempts: [first] })).toEqual([released]);
      const [kept] = await workers.attempts({ tokens: [token] });
      expect(kept).toMatchObject({ held: false, recorded: true });
      const again = only((await exchange(world, newPoll(worker))).claimed[0] ?? []);
      const settlement = { to: "failed", error: "broken" } as const;
      await workers.exchange({
        finishes: [{ worker, seq, token: again.token, settlement, recorded: true }],
        progress: [],
        polls: [],
      });
      const attempts = [{ seq, number: 2 }, first, { seq: seq + 1, number: 1 }, { seq, number: 3 }];
      expect(await workers.ends({ attempts })).toEqual([
        { outcome: "failed", error: "broken" },
        released,
        null,
        null,
      ]);
    });

    test("attempts past their timeout, deadline or unnamed for a lease are overdue", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const worker = await registerWorker(world);
      const now = world.clock.now();
      await world.submit(
        { id: "timeout", spec: { ...customSpec(1), timeoutMs: 1_000 } },
        { id: "deadline", deadline: now + 2_000 },
        { id: "unnamed" },
        { id: "named" },
      );
      expect((await workers.watch()).nextDueAt).toBeNull();
      const poll = newPoll(worker);
      await exchange(world, poll);
      const named = { hash: poll.tokens[3]?.hash ?? "" };
      await workers.name({ worker, attempts: [named], all: false });
      expect((await workers.watch()).nextDueAt).toBe(now + 1_000);
      world.clock.step(999);
      expect(await workers.overdue({ limit: 10 })).toEqual([]);
      world.clock.step(LEASE_MS - 999);
      const overdue = await workers.overdue({ limit: 10 });
      expect(overdue.map(({ reason, task }) => [task.id, reason])).toEqual([
        ["timeout", "timeout"],
        ["deadline", "deadline"],
        ["unnamed", "unnamed"],
      ]);
      expect(overdue[0]).toMatchObject({ worker, task: { attempts: [{ number: 1 }] } });
      expect(await workers.overdue({ limit: 1 })).toHaveLength(1);
    });

    test("limits of lanes, agents and tenants hold for workers and nodes together", async () => {
      const world = await openForWorkers(openWorld);
      const abilities: Abilities = { agents: new Map([["local", true]]), kinds: [] };
      for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities });
      const worker = await registerWorker(world, { agents: ["a", "b"] });
      await world.configureLane(LANE, { total: 4, perAgent: 2 });
      await world.storage.agents.configure({ tenant: TENANT, agent: "b", maxInflight: 1 });
      for (const agent of ["a", "b", "local"])
        await world.submit({ agent }, { agent }, { agent }, { agent, lane: OTHER_LANE });
      expect(await world.claim({ limit: 10 })).toHaveLength(2);
      const [claimed] = (await exchange(world, newPoll(worker))).claimed;
      const counts = Map.groupBy(claimed ?? [], ({ task }) => `${task.agent} ${task.lane}`);
      expect(claimed?.filter(({ task }) => task.lane === LANE)).toHaveLength(2);
      expect(claimed?.filter(({ task }) => task.agent === "b")).toHaveLength(1);
      expect(counts.get(`a ${OTHER_LANE}`)).toHaveLength(1);
      expect(await world.claim({ limit: 10 })).toEqual([]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("the task that waits in the agent served longest ago starts first, criticals before", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world, { agents: ["a", "b"] });
      await world.submit(
        { id: "a1", agent: "a" },
        { id: "a2", agent: "a" },
        { id: "b1", agent: "b" },
        { id: "b2", agent: "b", priority: 0 },
      );
      expect(await claimIds(world, newPoll(worker))).toEqual([["b2", "a1", "b1", "a2"]]);
    });

    test("a worker for all agents runs what no node can, and what is for workers", async () => {
      const world = await openForWorkers(openWorld);
      const abilities: Abilities = {
        agents: new Map([["local", true]]),
        kinds: ["message"],
        workerAgents: ["configured"],
      };
      for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities });
      const definition = { executor: { type: "worker" } };
      await world.storage.agents.create({ tenant: TENANT, agent: "stored", maxInflight: null, definition });
      await world.storage.agents.create({
        tenant: TENANT,
        agent: "http",
        maxInflight: null,
        definition: { executor: { type: "http", url: "http://127.0.0.1" } },
      });
      const worker = await registerWorker(world, { agents: ["*"] });
      const message = { ...newTask().spec, work: { kind: "message", message: "hi" } as const };
      await world.submit(
        { id: "unlisted", agent: "unlisted" },
        { id: "configured", agent: "configured", spec: message },
        { id: "stored", agent: "stored", spec: message },
        { id: "http", agent: "http" },
        { id: "local", agent: "local" },
        { id: "by kind", agent: "unlisted", spec: message },
      );
      const [ids] = await claimIds(world, newPoll(worker));
      expect(ids?.toSorted()).toEqual(["configured", "stored", "unlisted"]);
      const onNode = await world.claim({ limit: 10 });
      expect(onNode.map(({ task }) => task.id).toSorted()).toEqual(["by kind", "http", "local"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("an agent that a node serves is for no worker, also while the node is away", async () => {
      const world = await openForWorkers(openWorld);
      const { agents, nodes, workers } = world.storage;
      const both = ["free", "local"];
      const [worker, all] = [
        await registerWorker(world, { agents: both }),
        await registerWorker(world, { agents: ["*"] }),
      ];
      const serve = async (abilities: Abilities) => {
        for (const node of [NODE, OTHER_NODE]) await nodes.setAbilities({ node, abilities });
      };
      await serve({ agents: new Map([["local", true]]), kinds: [] });
      expect(await workers.register(newWorker({ agents: both }))).toEqual({ served: "local" });
      await serve(NOTHING);
      expect(await workers.register(newWorker({ agents: both }))).toEqual({ served: "local" });
      expect(await workers.register(newWorker({ agents: ["*"] }))).toMatchObject({ isNew: true });
      await world.submit({ id: "l", agent: "local" }, { id: "f", agent: "free" });
      expect(await claimIds(world, newPoll(worker, { max: 5 }), newPoll(all, { max: 5 }))).toEqual([
        ["f"],
        [],
      ]);
      expect((await world.storage.tasks.situation({ tenant: TENANT, id: "l" }))?.noExecutor).toMatchObject({
        served: true,
        byWorkers: false,
      });
      const definition = { executor: { type: "worker" } };
      await agents.create({ tenant: TENANT, agent: "local", maxInflight: null, definition });
      expect(await workers.register(newWorker({ agents: both }))).toMatchObject({ isNew: true });
      expect(await claimIds(world, newPoll(worker))).toEqual([["l"]]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("an agent that a node served is for workers once that is forgotten", async () => {
      const world = await openForWorkers(openWorld);
      const abilities: Abilities = { agents: new Map([["local", true]]), kinds: [] };
      for (const node of [NODE, OTHER_NODE])
        for (const each of [abilities, NOTHING])
          await world.storage.nodes.setAbilities({ node, abilities: each });
      const worker = newWorker({ agents: ["local"] });
      expect(await world.storage.workers.register(worker)).toEqual({ served: "local" });
      world.clock.step(AGENT_MEMORY_MS);
      await world.storage.agents.forget();
      expect(await world.storage.workers.register(worker)).toMatchObject({ isNew: true });
    });

    test("an agent for workers waits while there is none", async () => {
      const world = await openForWorkers(openWorld);
      const abilities: Abilities = { agents: new Map(), kinds: ["custom"], workerAgents: ["far off"] };
      for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities });
      const [inserted] = await world.submit({ id: "a", agent: "far off" });
      expect(inserted?.unserved).toBeUndefined();
      expect(await world.claim({ limit: 5 })).toEqual([]);
      expect((await world.storage.tasks.situation({ tenant: TENANT, id: "a" }))?.noExecutor).toEqual({
        served: true,
        byWorkers: true,
        lastSeenAt: null,
        since: null,
      });
      const worker = await registerWorker(world, { agents: ["far off"] });
      expect(await claimIds(world, newPoll(worker))).toEqual([["a"]]);
    });

    test("a critical task that finds no slot pre-empts a task of a worker that can run it", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world, { slots: 2 });
      await world.submit(
        { id: "kept" },
        { id: "gives way", preemptible: true, priority: 3 },
        { id: "other lane", preemptible: true, lane: OTHER_LANE },
      );
      const poll = newPoll(worker, { max: 2, agents: null });
      await exchange(world, poll);
      expect(await world.storage.counters.recountAll()).toEqual([]);
      const attempts = poll.tokens.slice(0, 2).map(({ hash }) => ({ hash }));
      await world.storage.workers.name({ worker, attempts, all: true });
      const running = async () =>
        (await world.storage.tasks.list({ tenant: TENANT, states: ["running"], limit: 10 })).tasks.map(
          ({ id }) => id,
        );
      const before = await running();
      expect(await world.storage.workers.preempt({ limit: 10 })).toEqual({ preempted: 0 });
      await world.submit({
        id: "critical",
        priority: 0,
        lane: before.includes("gives way") ? LANE : OTHER_LANE,
      });
      const victim = before.includes("gives way") ? "gives way" : "other lane";
      expect(await world.storage.workers.preempt({ limit: 10 })).toEqual({ preempted: 1 });
      expect(await world.storage.workers.preempt({ limit: 10 })).toEqual({ preempted: 0 });
      expect(await world.task(victim)).toMatchObject({
        state: "queued",
        attempts: [{ outcome: "preempted" }],
      });
      expect(await claimIds(world, newPoll(worker))).toEqual([["critical"]]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a worker that no longer asks for tasks has no free slot for a critical task, and none to be freed", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const [busy, silent] = [
        await registerWorker(world, { slots: 1 }),
        await registerWorker(world, { slots: 2 }),
      ];
      await world.submit({ id: "a", preemptible: true }, { id: "b", preemptible: true });
      const polls = [newPoll(busy, { max: 1 }), newPoll(silent, { max: 1 })];
      expect(await claimIds(world, ...polls)).toEqual([["a"], ["b"]]);
      for (const { worker, tokens } of polls)
        await workers.name({ worker, attempts: [{ hash: tokens[0]?.hash ?? "" }], all: true });
      await world.submit({ id: "critical", priority: 0 });
      // Up to now the second worker seems to be about to ask.
      expect(await workers.preempt({ limit: 10 })).toEqual({ preempted: 0 });
      world.clock.step(NOT_POLLING_MS + 1);
      await workers.renew({ signs: [busy, silent].map((worker) => ({ worker, polls: false })) });
      expect(await workers.preempt({ limit: 10 })).toEqual({ preempted: 1 });
      expect(await world.task("a")).toMatchObject({ state: "queued" });
      expect(await world.task("b")).toMatchObject({ state: "running" });
    });

    test("a deleted tenant leaves no workers, and its agents are forgotten", async () => {
      const world = await openForWorkers(openWorld);
      const { tenants, workers, agents } = world.storage;
      const limits = {
        ...{ maxQueued: null, maxInflight: null, maxSchedules: null, maxSessions: null },
        ...{ maxStreams: null, maxAgents: null, maxStoredBytes: null },
      };
      await tenants.create({ id: TENANT, name: TENANT, limits });
      const worker = await registerWorker(world);
      const gone = await registerWorker(world, { agents: ["gone"] });
      await workers.remove({ tenant: TENANT, id: gone });
      await world.submit({ id: "a" });
      const poll = newPoll(worker);
      await exchange(world, poll);
      for (let more = true; more; ) {
        const deleted = await tenants.delete({ id: TENANT, limit: 2 });
        more = deleted.found && deleted.was === null && deleted.more;
      }
      expect(await workers.list({ tenant: TENANT })).toEqual([]);
      expect(await workers.attempts({ hashes: [poll.tokens[0]?.hash ?? ""] })).toEqual([]);
      for (const agent of [AGENT, "gone"])
        expect(await agents.isKnown({ tenant: TENANT, agent })).toBe(false);
      const [inserted] = await world.submit({ id: "late", lane: OTHER_LANE });
      expect(inserted).toMatchObject({ unserved: true });
    });

    test("ends of the last ten minutes are counted", async () => {
      const world = await openForWorkers(openWorld);
      const worker = await registerWorker(world);
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      const [a, b, c] = (await exchange(world, newPoll(worker))).claimed[0] ?? [];
      if (a === undefined || b === undefined || c === undefined) throw new Error("Three were claimed.");
      await world.storage.workers.exchange({
        finishes: [
          {
            worker,
            recorded: true,
            seq: a.task.seq,
            token: a.token,
            settlement: { to: "done", result: null },
          },
          {
            worker,
            recorded: true,
            seq: b.task.seq,
            token: b.token,
            settlement: { to: "failed", error: "no" },
          },
          {
            worker,
            recorded: true,
            seq: c.task.seq,
            token: c.token,
            settlement: { to: "delayed", error: "no", runAt: world.clock.now() + 9 },
          },
        ],
        progress: [],
        polls: [],
      });
      const counts = async () => {
        const record = await world.storage.workers.get({ tenant: TENANT, id: worker });
        return [record?.done, record?.failed, record?.held];
      };
      expect(await counts()).toEqual([1, 2, 0]);
      world.clock.step(10 * 60_000);
      expect(await counts()).toEqual([0, 0, 0]);
    });
  });
}

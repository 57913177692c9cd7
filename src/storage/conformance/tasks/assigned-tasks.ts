import { describe, expect, test } from "vitest";
import type { BegunAttempt, Claim, ClaimedTask, FinishAndClaimParams } from "../../storage.ts";
import {
  AGENT,
  idsOf,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_NODE,
  only,
  ROOMY,
  TENANT,
  type World,
} from "../world.ts";

const done = { to: "done", result: 1 } as const;

function exchange(world: World, params: Partial<FinishAndClaimParams>) {
  return world.storage.tasks.finishAndClaim({
    node: NODE,
    finishes: [],
    progress: [],
    claims: [],
    ...params,
  });
}

async function claimAs(world: World, claim: Partial<Claim>, node = NODE): Promise<readonly ClaimedTask[]> {
  return (await exchange(world, { node, claims: [{ lane: LANE, limit: 0, ...claim }] })).claimed;
}

function begin(world: World, { token, task: { seq } }: ClaimedTask, more: Partial<BegunAttempt> = {}) {
  return exchange(world, { begun: [{ seq, token, ...more }] });
}

/** Assigns one task to the node. */
async function assign(world: World, id = "t"): Promise<ClaimedTask> {
  await world.submit({ id });
  return only(await claimAs(world, { limit: 1, state: "assigned" }));
}

async function typesOf(world: World, id: string): Promise<string[]> {
  return (await world.events()).filter(({ taskId }) => taskId === id).map(({ type }) => type);
}

export function describeAssignedTasks(open: OpenWorld): void {
  describe("an assigned attempt", () => {
    test("holds its task, which has not started", async () => {
      const world = await open();
      const claimed = await assign(world);
      const { clock } = world;
      expect(claimed.task).toMatchObject({ id: "t", state: "assigned", startedAt: null });
      expect(claimed.task.attempts).toEqual([
        { number: 1, startedAt: clock.now(), endedAt: null, outcome: null, error: null, node: NODE },
      ]);
      expect(await world.task("t")).toEqual(claimed.task);
      expect(await typesOf(world, "t")).toEqual(["task.created"]);
      expect(await world.claim()).toEqual([]);
      expect((await world.storage.nodes.heartbeat({ node: NODE })).held).toEqual([
        { seq: claimed.task.seq, token: claimed.token },
      ]);
    });

    test("is found by its state, and is counted in it", async () => {
      const world = await open();
      await assign(world);
      await world.submit({ id: "other" });
      await world.claim();
      const list = async (state: "assigned" | "running") => {
        const { tasks } = await world.storage.tasks.list({ tenant: TENANT, states: [state], limit: 10 });
        return tasks.map(({ id }) => id);
      };
      expect([await list("assigned"), await list("running")]).toEqual([["t"], ["other"]]);
      const { rows } = await world.storage.tasks.listRows({
        tenant: TENANT,
        states: ["assigned"],
        limit: 10,
      });
      expect(rows).toMatchObject([{ id: "t", state: "assigned", startedAt: null }]);
      expect(await world.storage.tasks.counts({ tenant: TENANT })).toEqual({ assigned: 1, running: 1 });
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "t" })).toMatchObject({
        lane: { inflight: 2 },
        agent: { inLane: 2 },
      });
    });

    test("counts in every limit as a running one does", async () => {
      const world = await open();
      const { storage } = world;
      await assign(world, "first");
      await world.configureLane(LANE, { total: 1 });
      await world.submit({ id: "second" });
      expect(await world.claim()).toEqual([]);
      await world.configureLane(LANE, { perAgent: 1 });
      expect(await world.claim()).toEqual([]);
      await world.configureLane(LANE, {});
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 1 });
      expect(await world.claim()).toEqual([]);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("holds its session, its concurrency key and its batch's parallelism", async () => {
      const world = await open();
      const session = { key: "s", maxConcurrent: 1 };
      await world.submit({ id: "s1", session }, { id: "s2", session });
      await world.submit({ id: "k1", concurrencyKey: "k" }, { id: "k2", concurrencyKey: "k" });
      expect(idsOf(await claimAs(world, { limit: 9, state: "assigned" }))).toEqual(["s1", "k1"]);
      expect(await world.claim({ limit: 9 })).toEqual([]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("keeps the usage that it reported before it was given back", async () => {
      const world = await open();
      const { token, task } = await assign(world);
      const usage = { inputTokens: 5, outputTokens: 2, contextWindow: 1_000 };
      const settlement = { to: "queued", error: "going away" } as const;
      await exchange(world, { finishes: [{ seq: task.seq, token, settlement, usage }] });
      expect(only(await world.claim()).task).toMatchObject({ usage, attempts: [{ number: 1 }] });
      expect(await world.task("t")).toMatchObject({ usage });
    });

    test("runs from when its node says that it began", async () => {
      const world = await open();
      const { clock } = world;
      const claimed = await assign(world);
      clock.step(20);
      await begin(world, claimed, { startedAt: clock.now() - 5 });
      const task = await world.task("t");
      expect(task).toMatchObject({ state: "running", startedAt: clock.now() - 5 });
      expect(task.attempts).toMatchObject([{ startedAt: clock.now() - 5, endedAt: null }]);
      const started = (await world.events()).filter(({ type }) => type === "task.started");
      expect(started).toMatchObject([{ at: clock.now(), data: { attempt: 1 }, state: "running" }]);
      clock.step(30);
      await begin(world, claimed, { startedAt: clock.now() });
      expect(await world.task("t")).toEqual(task);
      expect(await typesOf(world, "t")).toEqual(["task.created", "task.started"]);
      expect((await world.finish(claimed, done)).finished).toEqual([{ token: claimed.token, state: "done" }]);
      expect(await world.task("t")).toMatchObject({ startedAt: task.startedAt, completedAt: clock.now() });
    });

    test("began no earlier than it was claimed and no later than now", async () => {
      const world = await open();
      const { clock } = world;
      const early = await assign(world, "early");
      const late = await assign(world, "late");
      const unknown = await assign(world, "unknown");
      const claimedAt = clock.now();
      clock.step(10);
      await begin(world, early, { startedAt: claimedAt - 1_000 });
      await begin(world, late, { startedAt: clock.now() + 1_000 });
      await begin(world, unknown);
      expect((await world.task("early")).startedAt).toBe(claimedAt);
      expect((await world.task("late")).startedAt).toBe(clock.now());
      expect((await world.task("unknown")).startedAt).toBe(claimedAt);
    });

    test("is begun by its holder only", async () => {
      const world = await open();
      const { seq } = (await assign(world)).task;
      const claimed = only((await world.storage.nodes.heartbeat({ node: NODE })).held);
      await exchange(world, { node: OTHER_NODE, begun: [claimed] });
      await exchange(world, { begun: [{ seq, token: claimed.token + 1 }] });
      expect((await world.task("t")).state).toBe("assigned");
      await world.crash(NODE);
      await exchange(world, { begun: [claimed] });
      expect((await world.task("t")).state).toBe("assigned");
      expect(await typesOf(world, "t")).toEqual(["task.created"]);
    });

    test("may end at once: it began when it was claimed", async () => {
      const world = await open();
      const { clock } = world;
      const claimed = await assign(world);
      const failing = await assign(world, "failing");
      const claimedAt = clock.now();
      clock.step(10);
      await world.finish(claimed, done);
      await world.finish(failing, { to: "delayed", error: "no", runAt: clock.now() + 1 });
      expect(await world.task("t")).toMatchObject({
        state: "done",
        startedAt: claimedAt,
        completedAt: clock.now(),
        attempts: [{ startedAt: claimedAt, endedAt: clock.now(), outcome: "done" }],
      });
      expect(await typesOf(world, "t")).toEqual(["task.created", "task.started", "task.completed"]);
      expect(await typesOf(world, "failing")).toEqual(["task.created", "task.started", "task.retrying"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("may begin and end in one exchange, at the time that its node reports", async () => {
      const world = await open();
      const { clock } = world;
      const ends = await assign(world, "ends");
      const returns = await assign(world, "returns");
      const startedAt = clock.now() + 4;
      clock.step(10);
      const of = ({ task: { seq }, token }: typeof ends) => ({ seq, token });
      await exchange(world, {
        begun: [
          { ...of(ends), startedAt },
          { ...of(returns), startedAt },
        ],
        finishes: [
          { ...of(ends), settlement: done },
          { ...of(returns), settlement: { to: "queued", error: "interrupted" } },
        ],
      });
      expect(await world.task("ends")).toMatchObject({
        startedAt,
        attempts: [{ startedAt, outcome: "done" }],
      });
      expect(await world.task("returns")).toMatchObject({
        attempts: [{ startedAt, outcome: "interrupted" }],
      });
      expect(await typesOf(world, "ends")).toEqual(["task.created", "task.started", "task.completed"]);
      expect(await typesOf(world, "returns")).toEqual(["task.created", "task.started", "task.retrying"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("starts and ends in the log in the order of the waves of a call", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const claimed = await claimAs(world, { limit: 1, ahead: 3 });
      const held = claimed.map(({ token, task: { seq } }) => ({ seq, token }));
      const [a, b, c, d] = held;
      if (!a || !b || !c || !d) throw new Error("All are claimed.");
      const before = (await world.events()).at(-1)?.seq ?? 0;
      // One slot had them in turn, and d still has it.
      const { finished } = await exchange(world, {
        begun: [
          { ...b, wave: 1 },
          { ...c, wave: 2 },
          { ...d, wave: 3 },
        ],
        finishes: [c, b, a].map((end) => ({ ...end, settlement: done })),
      });
      expect(finished).toHaveLength(3);
      const log = (await world.events(before)).map(({ type, taskId }) => `${type.slice(5)} ${taskId}`);
      expect(log).toEqual([
        "completed a",
        "started b",
        "completed b",
        "started c",
        "completed c",
        "started d",
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("starts and ends of several tenants in the log in the order of the waves of a call", async () => {
      const world = await open();
      await world.submit(
        { id: "a" },
        { id: "b", tenant: "other" },
        { id: "c" },
        { id: "d", tenant: "other" },
      );
      const claimed = await claimAs(world, { limit: 0, ahead: 4 });
      const held = ["a", "b", "c", "d"].flatMap((id) =>
        claimed.filter(({ task }) => task.id === id).map(({ token, task: { seq } }) => ({ seq, token })),
      );
      const [a, b, c, d] = held;
      if (!a || !b || !c || !d) throw new Error("All are claimed.");
      const before = (await world.events()).at(-1)?.seq ?? 0;
      await exchange(world, {
        begun: [
          { ...a, wave: 1 },
          { ...b, wave: 1 },
          { ...c, wave: 2 },
          { ...d, wave: 2 },
        ],
        finishes: [a, b, d].map((end) => ({ ...end, settlement: done })),
      });
      const log = await world.events(before);
      expect(log.map(({ type, taskId, tenant }) => `${type.slice(5)} ${taskId} ${tenant}`)).toEqual([
        `started a ${TENANT}`,
        "started b other",
        `completed a ${TENANT}`,
        "completed b other",
        `started c ${TENANT}`,
        "started d other",
        "completed d other",
      ]);
      const numbers = log.map(({ seq }) => seq);
      expect(new Set(numbers).size).toBe(7);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("starts of a wave in the order in which its node reports them, whichever end at once", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      const claimed = await claimAs(world, { limit: 0, ahead: 3 });
      const held = claimed.map(({ token, task: { seq } }) => ({ seq, token }));
      const [a, b, c] = held;
      if (!a || !b || !c) throw new Error("All are claimed.");
      const before = (await world.events()).at(-1)?.seq ?? 0;
      await exchange(world, { begun: [a, b, c], finishes: [{ ...b, settlement: done }] });
      const log = (await world.events(before)).map(({ type, taskId }) => `${type.slice(5)} ${taskId}`);
      expect(log).toEqual(["started a", "started b", "started c", "completed b"]);
    });

    test("reports progress only once it has begun, after its start", async () => {
      const world = await open();
      const claimed = await assign(world);
      const { seq } = claimed.task;
      const report = (progress: unknown) => ({ seq, token: claimed.token, progress });
      await exchange(world, { progress: [report("too early")] });
      expect(await typesOf(world, "t")).toEqual(["task.created"]);
      await exchange(world, {
        begun: [{ seq, token: claimed.token, wave: 1 }],
        progress: [report("half"), report("most")],
        finishes: [{ seq, token: claimed.token, settlement: done }],
      });
      const log = (await world.events()).map(({ type, data }) => [type, data?.progress]);
      expect(log.slice(1)).toEqual([
        ["task.started", undefined],
        ["task.progress", "most"],
        ["task.completed", undefined],
      ]);
    });

    test("goes back to the queue as if it had never been claimed", async () => {
      const world = await open();
      await world.finish(await assign(world), { to: "queued", error: "not started" });
      expect(await typesOf(world, "t")).toEqual(["task.created", "task.retrying"]);
      expect(await world.task("t")).toMatchObject({
        state: "queued",
        retryCount: 0,
        startedAt: null,
        attempts: [],
      });
      const [again] = await world.claim();
      expect(again?.task).toMatchObject({ id: "t", attempts: [{ number: 1 }] });
    });

    test("is fenced by a cancel", async () => {
      const world = await open();
      const claimed = await assign(world);
      const cancelled = await world.storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      expect(cancelled).toMatchObject([{ id: "t", was: null, token: claimed.token }]);
      await begin(world, claimed);
      expect((await world.finish(claimed, done)).finished).toEqual([]);
      expect(await world.task("t")).toMatchObject({
        state: "cancelled",
        attempts: [{ outcome: "cancelled" }],
      });
      expect(await typesOf(world, "t")).toEqual(["task.created", "task.started", "task.cancelled"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("is stopped with its session", async () => {
      const world = await open();
      await world.submit({ id: "t", session: { key: "s", maxConcurrent: 1 } });
      const { token } = only(await claimAs(world, { limit: 1, state: "assigned" }));
      const fenced: number[] = [];
      world.storage.subscribe((signal) => {
        if (signal.kind === "fenced") fenced.push(...signal.tokens);
      });
      await world.storage.sessions.stop({ tenant: TENANT, key: "s", scope: "all", limit: 10 });
      expect((await world.task("t")).state).toBe("cancelled");
      expect(fenced).toEqual([token]);
    });

    test("is pre-empted once it runs, not before", async () => {
      const world = await open();
      const slots = { [LANE]: 1 };
      await world.storage.nodes.setSlots({ node: NODE, slots });
      await world.submit({ id: "t", preemptible: true });
      const claimed = only(await claimAs(world, { limit: 1, state: "assigned" }));
      await world.submit({ id: "urgent", priority: 0 });
      expect((await world.task("t")).state).toBe("assigned");
      await begin(world, claimed);
      expect(await world.task("t")).toMatchObject({ state: "queued", attempts: [{ outcome: "preempted" }] });
      expect(idsOf(await world.claim())).toEqual(["urgent"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("does not keep a critical task from a slot that a task of its node could give up", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.submit({ id: "runs", preemptible: true }, { id: "held" });
      expect(idsOf(await claimAs(world, { limit: 1, ahead: 1 }))).toEqual(["runs", "held"]);
      await world.submit({ id: "urgent", priority: 0 });
      expect((await world.task("runs")).state).toBe("queued");
      expect((await world.task("held")).state).toBe("assigned");
    });

    test("is queued again when its node dies, without counting as lost", async () => {
      const world = await open();
      await world.submit({ id: "again", maxRetriesIfLost: 1 }, { id: "last", maxRetriesIfLost: 0 });
      await claimAs(world, { limit: 2, state: "assigned" });
      await world.crash(NODE);
      const rescued = await world.storage.tasks.rescue({ node: NODE, limit: 10, maxLost: 1 });
      expect([rescued.requeued.length, rescued.failed.length]).toEqual([1, 1]);
      expect(await world.task("again")).toMatchObject({
        state: "queued",
        retryCount: 1,
        attempts: [{ number: 1, outcome: "lost" }],
      });
      expect(await world.task("last")).toMatchObject({ state: "failed", error: "worker lost" });
      expect(await typesOf(world, "last")).toEqual(["task.created", "task.started", "task.failed"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("keeps its deadline until it ends, and is not pruned", async () => {
      const world = await open();
      const { clock, storage } = world;
      await world.submit({ id: "t", deadline: clock.now() + 5 });
      await claimAs(world, { limit: 1, state: "assigned" });
      clock.step(10);
      await storage.tasks.expire({ limit: 10 });
      await storage.tasks.prune({ retentionMs: 0, rejectedMax: 0, limit: 100 });
      expect((await world.task("t")).state).toBe("assigned");
    });

    test("is no running task of its node and its lane", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 3 } });
      await world.submit({}, {});
      await claimAs(world, { limit: 1, ahead: 1 });
      const details = await world.storage.nodes.details();
      const { lanes } = details.find(({ node }) => node === NODE) ?? { lanes: [] };
      expect(lanes).toEqual([{ lane: LANE, slots: 3, running: 1 }]);
      const listed = await world.storage.lanes.list();
      expect(listed.find(({ name }) => name === LANE)).toMatchObject({ inflight: 2, running: 1 });
    });
  });

  describe("claiming ahead", () => {
    test("follows what starts now, in the same order", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", agent: "other" }, { id: "c" }, { id: "d", agent: "other" });
      const claimed = await claimAs(world, { limit: 1, ahead: 2 });
      expect(claimed.map(({ task: { id, state } }) => [id, state])).toEqual([
        ["a", "running"],
        ["b", "assigned"],
        ["c", "assigned"],
      ]);
      expect(idsOf(await claimAs(world, { ahead: 5 }))).toEqual(["d"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("ends at the first task that must not wait on a node", async () => {
      const world = await open();
      const blocking: Parameters<World["submit"]>[0][] = [
        { session: { key: "s", maxConcurrent: 1 } },
        { concurrencyKey: "k" },
        { maxRetriesIfLost: 0 },
      ];
      for (const each of blocking) {
        await world.submit({ id: "first" }, { id: "blocks", ...each }, { id: "behind" });
        expect(idsOf(await claimAs(world, { ahead: 9 }))).toEqual(["first"]);
        expect(idsOf(await claimAs(world, { ahead: 9 }))).toEqual([]);
        expect(idsOf(await claimAs(world, { limit: 1, ahead: 9 }))).toEqual(["blocks", "behind"]);
        await world.storage.tasks.cancel({ tenant: TENANT, ids: ["first", "blocks", "behind"], error: null });
        await world.storage.tasks.prune({ retentionMs: -1, rejectedMax: 0, limit: 100 });
      }
    });

    test("claims tasks of a batch, unless the batch has a parallelism", async () => {
      const world = await open();
      const insert = (id: string, parallelism: number | null) =>
        world.storage.tasks.insert({
          tasks: [newTask({ id, batch: `batch of ${id}` })],
          batches: [{ id: `batch of ${id}`, tenant: TENANT, parallelism, callbackUrl: null }],
          limits: ROOMY,
        });
      await insert("free", null);
      await insert("bounded", 1);
      expect(idsOf(await claimAs(world, { ahead: 9 }))).toEqual(["free"]);
    });

    test("claims no task that has run before, or was lost", async () => {
      const world = await open();
      await world.submit({ id: "lost" });
      await claimAs(world, { ahead: 1 }, OTHER_NODE);
      await world.crash(OTHER_NODE);
      await world.storage.tasks.rescue({ node: OTHER_NODE, limit: 10 });
      expect(await claimAs(world, { ahead: 1 })).toEqual([]);
      const lost = only(await world.claim());
      await world.finish(lost, { to: "queued", error: "interrupted" });
      expect(await claimAs(world, { ahead: 1 })).toEqual([]);
      expect(idsOf(await world.claim())).toEqual(["lost"]);
    });

    test("leaves the next slot to a critical task, and says so", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "urgent", priority: 0 });
      const claims = (limit: number) => [{ lane: LANE, limit, ahead: 5 }];
      const first = await exchange(world, { claims: claims(0) });
      expect([idsOf(first.claimed), first.criticalWaits]).toEqual([[], [LANE]]);
      const second = await exchange(world, { claims: claims(1) });
      expect([idsOf(second.claimed), second.criticalWaits]).toEqual([["urgent", "a"], undefined]);
    });

    test("does nothing in a lane that starts tasks strictly by priority", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      await world.submit({ id: "a" }, { id: "b" });
      expect(idsOf(await claimAs(world, { limit: 1, ahead: 5 }))).toEqual(["a"]);
    });

    test("keeps within the limits of lanes, agents and tenants", async () => {
      const world = await open();
      await world.submit(...["a", "b", "c", "d", "e"].map((id) => ({ id })));
      await world.configureLane(LANE, { total: 3 });
      expect(idsOf(await claimAs(world, { limit: 1, ahead: 5 }))).toEqual(["a", "b", "c"]);
      await world.configureLane(LANE, { perAgent: 4 });
      expect(idsOf(await claimAs(world, { limit: 0, ahead: 5 }))).toEqual(["d"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("counts in what the node can claim in all", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      const { claimed } = await exchange(world, {
        claims: [{ lane: LANE, limit: 1, ahead: 5 }],
        claimsMax: 2,
      });
      expect(idsOf(claimed)).toEqual(["a", "b"]);
    });

    test("fills slots that the same exchange frees, and frees what was held ahead", async () => {
      const world = await open();
      await world.configureLane(LANE, { total: 2 });
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const [a, b] = await claimAs(world, { limit: 1, ahead: 1 });
      if (a === undefined || b === undefined) throw new Error("Both are claimed.");
      const ends = [a, b].map(({ token, task: { seq } }) => ({ seq, token, settlement: done }));
      const begun = [{ seq: b.task.seq, token: b.token }];
      const { claimed, finished } = await exchange(world, {
        begun,
        finishes: ends,
        claims: [{ lane: LANE, limit: 0, ahead: 5 }],
      });
      expect(finished).toHaveLength(2);
      expect(idsOf(claimed)).toEqual(["c", "d"]);
      expect(await typesOf(world, "b")).toEqual(["task.created", "task.started", "task.completed"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });
}

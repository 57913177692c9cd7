import { describe, expect, test } from "vitest";
import type { ClaimedTask, NewTask, SendParams, SentMessage } from "../../storage.ts";
import {
  AGENT,
  idsOf,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  OTHER_NODE,
  only,
  ROOMY,
  TENANT,
  type World,
} from "../world.ts";

const KEY = "user:42";
const SESSION = { key: KEY, maxConcurrent: 1 };
const DEFAULTS = { mode: "queue", cap: 10, drop: "old", debounceMs: 0 } as const;
const WINDOW = { ...DEFAULTS, debounceMs: 100 };

interface Saying {
  readonly task?: Partial<NewTask>;
  readonly mode?: SendParams["mode"];
  readonly maxConcurrent?: number;
  readonly defaults?: Partial<SendParams["defaults"]>;
}

/** Sends a message to the session. */
function say(
  world: World,
  message: string,
  { task = {}, mode = null, maxConcurrent, defaults }: Saying = {},
) {
  const { spec, ...rest } = newTask({ lane: LANE, ...task });
  return world.storage.sessions.send({
    task: {
      ...rest,
      origin: "message",
      session: SESSION,
      spec: { ...spec, work: { kind: "message", message } },
    },
    mode,
    maxConcurrent: maxConcurrent ?? null,
    defaults: { ...DEFAULTS, ...defaults },
  });
}

function accepted(sent: SentMessage) {
  if (sent.refused !== null) throw new Error("It was refused.");
  return sent;
}

async function messageOf(world: World, id: string): Promise<string | undefined> {
  const { work } = (await world.task(id)).spec;
  return work.kind === "message" ? work.message : undefined;
}

async function endsOf(world: World, ...ids: string[]): Promise<(string | null)[][]> {
  const tasks = await Promise.all(ids.map((id) => world.task(id)));
  return tasks.map(({ id, state, error }) => [id, state, error]);
}

function getSession(world: World) {
  return world.storage.sessions.get({ tenant: TENANT, key: KEY });
}

function stop(world: World, scope: "oldest" | "all" | "reset", limit = 100) {
  return world.storage.sessions.stop({ tenant: TENANT, key: KEY, scope, limit });
}

function update(world: World, changes: Parameters<World["storage"]["sessions"]["update"]>[0]["changes"]) {
  return world.storage.sessions.update({ tenant: TENANT, key: KEY, defaultMax: 1, changes });
}

export function describeSessions(open: OpenWorld): void {
  describe("a session", () => {
    test("runs its tasks in the order of acceptance, one at a time, whichever node asks, whatever their priority", async () => {
      const world = await open();
      await world.submit(
        { id: "1", session: SESSION, priority: 3 },
        { id: "2", session: SESSION, agent: "b", priority: 0 },
        { id: "3", session: SESSION, lane: OTHER_LANE },
        { id: "alone" },
      );
      expect(idsOf(await world.claim({ limit: 9 })).sort()).toEqual(["1", "alone"]);
      expect(await world.claim({ node: OTHER_NODE, limit: 9 })).toEqual([]);
      expect(await world.claim({ lane: OTHER_LANE, limit: 9 })).toEqual([]);
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, session: KEY, limit: 9 });
      expect(tasks.map(({ id, state }) => [id, state])).toEqual([
        ["3", "queued"],
        ["2", "queued"],
        ["1", "running"],
      ]);
      expect(await getSession(world)).toMatchObject({ running: 1, queued: 2 });
    });

    test("lets the next one in with the very end of the one before it, however that ends", async () => {
      const world = await open();
      await world.submit(...["1", "2", "3"].map((id) => ({ id, session: SESSION })));
      const one = only(await world.claim({ limit: 9 }));
      const { claimed } = await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [{ token: one.token, seq: one.task.seq, settlement: { to: "failed", error: "no" } }],
        progress: [],
        claims: [{ lane: LANE, limit: 9 }],
      });
      expect(idsOf(claimed)).toEqual(["2"]);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["2"], error: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["3"]);
    });

    test("keeps the position of a task that waits for its retry, was interrupted or lost its node", async () => {
      const world = await open();
      await world.submit({ id: "1", session: SESSION }, { id: "2", session: SESSION });
      await world.finish(only(await world.claim({ limit: 9 })), {
        to: "delayed",
        error: "no",
        runAt: world.clock.now() + 10,
      });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      await world.finish(only(await world.claim({ limit: 9 })), { to: "queued", error: "shutdown" });
      const again = await world.claim({ node: OTHER_NODE, limit: 9 });
      expect(idsOf(again)).toEqual(["1"]);
      await world.crash(OTHER_NODE);
      await world.storage.tasks.rescue({ node: OTHER_NODE, limit: 9 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
    });

    test("gives a task that waited for its moment or for another its position when it becomes ready", async () => {
      const world = await open();
      await world.submit(
        { id: "parent" },
        { id: "timed", session: SESSION, runAt: world.clock.now() + 10 },
        { id: "child", session: SESSION, dependsOn: ["parent"] },
        { id: "plain", session: SESSION },
      );
      const order: string[] = [];
      const runNext = async () => {
        for (const claimed of await world.claim({ limit: 9 })) {
          order.push(claimed.task.id);
          await world.finish(claimed, { to: "done", result: null });
        }
      };
      await runNext();
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      await runNext();
      await runNext();
      expect(order).toEqual(["parent", "plain", "child", "timed"]);
    });

    test("runs as many at once as it may, and those that start together in order", async () => {
      const world = await open();
      const session = { key: KEY, maxConcurrent: 2 };
      await world.submit(
        { id: "low", session, priority: 3 },
        { id: "high", session, priority: 1 },
        { id: "last", session },
      );
      expect(idsOf(await world.claim({ limit: 1 }))).toEqual(["low"]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["high"]);
    });

    test("takes its bound from the last who said, and lets those step back that have not started", async () => {
      const world = await open();
      await update(world, { maxConcurrent: 3 });
      await world.submit(...["1", "2", "3", "4"].map((id) => ({ id, session: SESSION })));
      const one = only(await world.claim({ limit: 1 }));
      await update(world, { maxConcurrent: 1 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(one, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["2"]);
      await update(world, { maxConcurrent: null });
      expect(await getSession(world)).toMatchObject({ maxConcurrent: null, running: 1, queued: 2 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("runs one at a time while its context is nearly full, and touches nothing that runs", async () => {
      const world = await open();
      await update(world, { maxConcurrent: 2, contextWindow: 1_000 });
      await world.submit(...["1", "2", "3", "4"].map((id) => ({ id, session: SESSION })));
      const [one, two] = await world.claim({ limit: 9 });
      const usage = { inputTokens: 900, outputTokens: 100, contextTokens: 600 };
      await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [
          {
            token: one?.token ?? 0,
            seq: one?.task.seq ?? 0,
            settlement: { to: "done", result: null },
            usage,
          },
        ],
        progress: [],
        claims: [],
      });
      expect(await getSession(world)).toMatchObject({ tokens: 600, contextWindow: 1_000, running: 1 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(two as ClaimedTask, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["3"]);
      await update(world, { tokens: 599 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["4"]);
    });

    test("keeps its count of tokens when an attempt says what it cost, but not how full the context is", async () => {
      const world = await open();
      await update(world, { tokens: 900, contextWindow: 1_000 });
      await world.submit({ id: "1", session: SESSION });
      const { token, task } = only(await world.claim());
      const usage = { inputTokens: 0, outputTokens: 0, contextWindow: 2_000 };
      const finish = { token, seq: task.seq, settlement: { to: "done", result: null }, usage } as const;
      await world.storage.tasks.finishAndClaim({ node: NODE, finishes: [finish], progress: [], claims: [] });
      expect(await getSession(world)).toMatchObject({ tokens: 900, contextWindow: 2_000 });
    });

    test("lets one step back that comes back from waiting for its retry when fewer may run by now", async () => {
      const world = await open();
      await update(world, { maxConcurrent: 2 });
      await world.submit(...["1", "2"].map((id) => ({ id, session: SESSION })));
      const [, two] = await world.claim({ limit: 9 });
      const runAt = world.clock.now() + 10;
      await world.finish(two as ClaimedTask, { to: "delayed", error: "no", runAt });
      await update(world, { maxConcurrent: 1 });
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("lets one that had to give way step back at once when fewer may run by now", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 2 } });
      await update(world, { maxConcurrent: 2 });
      await world.submit(...["1", "2"].map((id) => ({ id, session: SESSION, preemptible: true })));
      await world.claim({ limit: 9 });
      await update(world, { maxConcurrent: 1 });
      await world.submit({ id: "urgent", priority: 0 });
      const situation = await world.storage.tasks.situation({ tenant: TENANT, id: "2" });
      expect(situation).toMatchObject({ task: { state: "queued" }, session: { max: 1, active: ["1"] } });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["urgent"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("says that it is what holds a task, and who goes first", async () => {
      const world = await open();
      await world.submit({ id: "1", session: SESSION }, { id: "2", session: SESSION });
      const situation = await world.storage.tasks.situation({ tenant: TENANT, id: "2" });
      expect(situation).toMatchObject({ session: { key: KEY, max: 1, active: ["1"] }, batch: null });
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "1" })).toMatchObject({
        session: null,
      });
    });

    test("is its tenant's alone, and is listed newest first", async () => {
      const world = await open();
      await world.submit(
        { id: "mine", session: SESSION },
        { id: "theirs", session: SESSION, tenant: "zeta" },
      );
      expect(idsOf(await world.claim({ limit: 9 })).sort()).toEqual(["mine", "theirs"]);
      await world.storage.sessions.update({
        tenant: TENANT,
        key: "other",
        defaultMax: 1,
        changes: { cap: 3 },
      });
      const first = await world.storage.sessions.list({ tenant: TENANT, limit: 1 });
      expect(first.sessions.map(({ key, cap }) => [key, cap])).toEqual([["other", 3]]);
      const cursor = first.nextCursor ?? -1;
      const rest = await world.storage.sessions.list({ tenant: TENANT, limit: 9, cursor });
      expect(rest).toMatchObject({ sessions: [{ key: KEY }], nextCursor: null });
      expect(await world.storage.sessions.get({ tenant: "unknown", key: KEY })).toBeNull();
    });

    test("goes with the last of its tasks, unless it has settings", async () => {
      const world = await open();
      await world.submit({ id: "1", session: SESSION });
      await world.submit({ id: "2", session: { key: "kept", maxConcurrent: 1 } });
      const kept = { tenant: TENANT, key: "kept" };
      await world.storage.sessions.update({ ...kept, defaultMax: 1, changes: { cap: 5 } });
      const addressed = { tenant: TENANT, key: "addressed" };
      await world.submit({ id: "3", session: { key: "addressed", maxConcurrent: 1 } });
      await world.storage.sessions.update({ ...addressed, defaultMax: 1, changes: { agent: "bob" } });
      for (const claimed of await world.claim({ limit: 9 })) {
        await world.finish(claimed, { to: "done", result: null });
      }
      world.clock.step(1_000);
      await world.storage.tasks.prune({ retentionMs: 10, rejectedMax: 0, limit: 100 });
      expect(await getSession(world)).toBeNull();
      expect(await world.storage.sessions.get(kept)).toMatchObject({ cap: 5 });
      expect(await world.storage.sessions.get(addressed)).toMatchObject({ agent: "bob" });
    });
  });

  describe("a message", () => {
    test("is neither counted nor refused by admission", async () => {
      const world = await open();
      const limits = { maxQueueSize: 1, maxQueueSizeTotal: 1_000, maxPerAgent: 1 };
      await say(world, "hello");
      await say(world, "again");
      const [first, second] = await world.storage.tasks.insert({
        tasks: [newTask({ id: "a" }), newTask({ id: "b" })],
        limits,
      });
      expect([first?.state, second?.state]).toEqual(["queued", "rejected"]);
      expect(second?.rejection).toEqual({ full: "global", queued: 1 });
      expect(accepted(await say(world, "still")).task.state).toBe("queued");
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("belongs to the agent whose task began it, until a message is for another", async () => {
      const world = await open();
      await world.submit({ session: SESSION, agent: "b" }, { session: SESSION, agent: "c" });
      expect(await getSession(world)).toMatchObject({ agent: "b", lane: null });
      await world.submit({ session: SESSION, agent: "c" });
      expect(await getSession(world)).toMatchObject({ agent: "b", lane: null });
      await say(world, "hello", { task: { agent: "c" } });
      expect(await getSession(world)).toMatchObject({ agent: "c" });
    });

    test("leaves agent and lane on the session, and its maxConcurrent, but not its mode", async () => {
      const world = await open();
      await say(world, "hello", { task: { agent: "b" }, mode: "followup", maxConcurrent: 3 });
      expect(await getSession(world)).toMatchObject({ agent: "b", lane: LANE, mode: null, maxConcurrent: 3 });
    });

    test("that comes when the session is full makes the one go that waits longest, or is refused", async () => {
      const world = await open();
      await say(world, "1", { task: { id: "1" } });
      await world.claim({ limit: 1 });
      const full = { defaults: { cap: 2 } };
      await say(world, "2", { task: { id: "2" }, ...full });
      await say(world, "3", { task: { id: "3" }, ...full });
      // Tasks that only have the session's key are neither counted nor dropped.
      await world.submit({ id: "task", session: SESSION });
      const { cancelled } = accepted(await say(world, "4", { task: { id: "4" }, ...full }));
      expect(cancelled.map(({ id }) => id)).toEqual(["2"]);
      expect(await endsOf(world, "2")).toEqual([["2", "cancelled", "queue_dropped"]]);

      const refusing = { defaults: { cap: 2, drop: "new" } } as const;
      expect(await say(world, "5", { task: { id: "5" }, ...refusing })).toEqual({
        refused: { waiting: 2, cap: 2 },
      });
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "5" })).toBeNull();
    });

    test("in mode interrupt ends all that runs and waits, and starts at once", async () => {
      const world = await open();
      await world.submit({ id: "running", session: SESSION }, { id: "waiting", session: SESSION });
      const claimed = only(await world.claim({ limit: 9 }));
      await say(world, "soon", { task: { id: "soon" }, defaults: WINDOW });
      const sent = accepted(
        await say(world, "now", { task: { id: "now" }, mode: "interrupt", defaults: WINDOW }),
      );
      expect(sent.task.state).toBe("queued");
      expect(sent.cancelled.map(({ id }) => id).sort()).toEqual(["running", "soon", "waiting"]);
      expect(await endsOf(world, "running", "waiting", "soon")).toEqual([
        ["running", "cancelled", "interrupted"],
        ["waiting", "cancelled", "interrupted"],
        ["soon", "cancelled", "interrupted"],
      ]);
      expect((await world.finish(claimed, { to: "done", result: 1 })).finished).toEqual([]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["now"]);
    });
  });

  describe("messages in quick succession", () => {
    test("become one run, which starts a window after the last of them", async () => {
      const world = await open();
      const first = accepted(await say(world, "one", { task: { id: "1" }, defaults: WINDOW }));
      expect([first.merged, first.task.state, first.task.position]).toEqual([false, "delayed", 0]);
      world.clock.step(60);
      const second = accepted(await say(world, "two", { task: { id: "2" }, defaults: WINDOW }));
      expect([second.merged, second.task.id, second.task.state]).toEqual([true, "1", "delayed"]);
      world.clock.step(60);
      expect((await world.storage.tasks.promoteDue({ limit: 9 })).promoted).toBe(0);
      world.clock.step(40);
      expect(await world.storage.tasks.nextDueAt()).toBe(world.clock.now());
      await world.storage.tasks.promoteDue({ limit: 9 });
      const claimed = only(await world.claim({ limit: 9 }));
      expect(claimed.task.spec.work).toEqual({ kind: "message", message: "one\ntwo" });
      // The next message is a task of its own.
      expect(accepted(await say(world, "three", { defaults: WINDOW })).merged).toBe(false);
    });

    test("start after five windows, however long they keep coming", async () => {
      const world = await open();
      for (let n = 0; n < 7; n += 1) {
        const sent = accepted(await say(world, `${n}`, { defaults: WINDOW }));
        if (n > 0) expect(sent.merged).toBe(true);
        if (n < 6) world.clock.step(80);
      }
      world.clock.step(20);
      expect((await world.storage.tasks.promoteDue({ limit: 9 })).promoted).toBe(1);
    });

    test("are runs of their own when agent, lane or mode differ, in order", async () => {
      const world = await open();
      await say(world, "1", { task: { id: "1" }, defaults: WINDOW });
      await say(world, "2", { task: { id: "2", agent: "b" }, defaults: WINDOW });
      await say(world, "3", { task: { id: "3", agent: "b" }, mode: "followup", defaults: WINDOW });
      await say(world, "4", { task: { id: "4" }, defaults: { ...WINDOW, debounceMs: 0 } });
      expect((await world.task("3")).state).toBe("queued");
      const order: string[] = [];
      for (let n = 0; n < 4; n += 1) {
        const claimed = only(await world.claim({ limit: 9 }));
        order.push(claimed.task.id);
        await world.finish(claimed, { to: "done", result: null });
      }
      expect(order).toEqual(["1", "2", "3", "4"]);
    });

    test("wait no longer once any other task of the session is ready", async () => {
      const world = await open();
      await say(world, "first", { task: { id: "first" }, defaults: WINDOW });
      await world.submit({ id: "task", session: SESSION });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["first"]);
      expect(await messageOf(world, "first")).toBe("first");
    });

    test("go ahead of a task whose moment comes together with theirs, and enter the queue once", async () => {
      const world = await open();
      await world.submit({ id: "timed", session: SESSION, runAt: world.clock.now() + 50 });
      await say(world, "first", { task: { id: "first" }, defaults: WINDOW });
      world.clock.step(100);
      expect(await world.storage.tasks.promoteDue({ limit: 9 })).toEqual({ promoted: 2 });
      expect(await world.storage.tasks.counts({ tenant: TENANT })).toEqual({ queued: 2 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["first"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("count as one towards the cap", async () => {
      const world = await open();
      const narrow = { ...WINDOW, cap: 1, drop: "new" } as const;
      await say(world, "one", { defaults: narrow });
      expect(accepted(await say(world, "two", { defaults: narrow })).merged).toBe(true);
    });
  });

  describe("stopping a session", () => {
    test("ends the running task that started first, and lets the others go on", async () => {
      const world = await open();
      const session = { key: KEY, maxConcurrent: 2 };
      await world.submit(...["1", "2", "3"].map((id) => ({ id, session })));
      await world.claim({ limit: 9 });
      const stopped = await stop(world, "oldest");
      expect([stopped.stopped.map(({ id }) => id), stopped.cancelled]).toEqual([["1"], []]);
      expect(await endsOf(world, "1")).toEqual([["1", "cancelled", "stopped"]]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["3"]);
      const event = (await world.events()).find(({ type }) => type === "task.cancelled");
      expect(event).toMatchObject({ taskId: "1", session: KEY, data: { error: "stopped" } });
    });

    test("ends the first that waits when none runs: for its retry, for a slot, then in the debounce window", async () => {
      const world = await open();
      const { clock, storage } = world;
      const ended = async () => {
        const { stopped, cancelled } = await stop(world, "oldest");
        return [stopped.map(({ id }) => id), cancelled.map(({ id }) => id)];
      };
      await world.submit(
        { id: "parent" },
        { id: "timed", session: SESSION, runAt: clock.now() + 10_000 },
        { id: "dependant", session: SESSION, dependsOn: ["parent"] },
        { id: "retrying", session: SESSION, priority: 0 },
        { id: "slot", session: SESSION },
      );
      const runAt = clock.now() + 1_000;
      await world.finish(only(await world.claim()), { to: "delayed", error: "busy", runAt });
      await say(world, "later", { task: { id: "debounced" }, defaults: WINDOW });
      expect(await ended()).toEqual([[], ["retrying"]]);
      expect(await ended()).toEqual([[], ["slot"]]);
      expect(await ended()).toEqual([[], ["debounced"]]);
      expect(await ended()).toEqual([[], []]);
      expect(await endsOf(world, "retrying", "debounced")).toEqual([
        ["retrying", "cancelled", "stopped"],
        ["debounced", "cancelled", "stopped"],
      ]);
      expect([(await world.task("timed")).state, (await world.task("dependant")).state]).toEqual([
        "delayed",
        "waiting_dependency",
      ]);
      expect(await storage.counters.recountAll()).toEqual([]);
      // The next message is not appended.
      expect(accepted(await say(world, "again", { defaults: WINDOW })).merged).toBe(false);
    });

    test("ends one that its session holds back, when none runs", async () => {
      const world = await open();
      await world.submit(...["1", "2", "3"].map((id) => ({ id, session: { key: KEY, maxConcurrent: 2 } })));
      for (const id of ["1", "2", "3"])
        expect((await stop(world, "oldest")).cancelled.map((ended) => ended.id)).toEqual([id]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("of all of it ends what runs and what waits, in slices, and leaves what came since alone", async () => {
      const world = await open();
      await world.submit(
        { id: "running", session: SESSION },
        { id: "waiting", session: SESSION },
        { id: "timed", session: SESSION, runAt: world.clock.now() + 10 },
      );
      await world.claim({ limit: 9 });
      const first = await stop(world, "all", 2);
      expect([first.stopped, first.cancelled].map((ended) => ended.map(({ id }) => id))).toEqual([
        ["running"],
        ["waiting"],
      ]);
      expect(first.more).toBe(true);
      await world.submit({ id: "new", session: SESSION });
      const { cutoff } = first;
      const rest = await world.storage.sessions.stop({
        tenant: TENANT,
        key: KEY,
        scope: "all",
        limit: 2,
        cutoff,
      });
      expect([rest.cancelled.map(({ id }) => id), rest.more]).toEqual([["timed"], false]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["new"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("makes whatever older one still turns up end as stale", async () => {
      const world = await open();
      await world.submit(
        { id: "running", session: SESSION },
        { id: "parked", session: SESSION },
        { id: "timed", session: SESSION, runAt: world.clock.now() + 10 },
        { id: "new-later", session: SESSION, runAt: world.clock.now() + 10 },
      );
      await world.claim({ limit: 9 });
      // The caller stopped after the first slice.
      await stop(world, "all", 1);
      expect(await endsOf(world, "parked")).toEqual([["parked", "cancelled", "stale"]]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(await endsOf(world, "timed")).toEqual([["timed", "cancelled", "stale"]]);
      await world.storage.tasks.retry({ tenant: TENANT, id: "timed" });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["timed"]);
    });

    test("reaches tasks that depend on a stale one", async () => {
      const world = await open();
      await world.submit(
        { id: "1", session: SESSION },
        { id: "2", session: SESSION },
        { id: "3", session: SESSION, runAt: world.clock.now() + 10 },
        { id: "after-2", dependsOn: ["2"] },
        { id: "after-3", dependsOn: ["3"] },
      );
      await stop(world, "all", 1);
      expect(await endsOf(world, "after-2")).toEqual([["after-2", "cancelled", "dependency 2 cancelled"]]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(await endsOf(world, "after-3")).toEqual([["after-3", "cancelled", "dependency 3 cancelled"]]);
    });

    test("by a reset begins a new generation with an empty context", async () => {
      const world = await open();
      await update(world, { tokens: 900, contextWindow: 1_000, maxConcurrent: 2 });
      await world.submit({ id: "1", session: SESSION }, { id: "2", session: SESSION });
      const claimed = only(await world.claim({ limit: 9 }));
      await stop(world, "reset");
      expect(await endsOf(world, "1", "2")).toEqual([
        ["1", "cancelled", "session_reset"],
        ["2", "cancelled", "session_reset"],
      ]);
      expect((await world.finish(claimed, { to: "done", result: 1 })).finished).toEqual([]);
      expect(await getSession(world)).toMatchObject({ generation: 1, tokens: null, running: 0, queued: 0 });
      expect(await getSession(world)).toMatchObject({ maxConcurrent: 2 });
    });

    test("that does not exist changes nothing", async () => {
      const world = await open();
      expect(await stop(world, "reset")).toMatchObject({ stopped: [], cancelled: [], more: false });
      expect(await getSession(world)).toBeNull();
    });
  });

  describe("a task of a session that is in a batch, too", () => {
    test("waits for both", async () => {
      const world = await open();
      const tasks = [
        newTask({ id: "1", batch: "b", session: SESSION }),
        newTask({ id: "2", batch: "b", session: SESSION, agent: "b" }),
        newTask({ id: "3", batch: "b", agent: "c" }),
      ];
      const batches = [{ id: "b", tenant: TENANT, parallelism: 2, callbackUrl: null }];
      await world.storage.tasks.insert({ tasks, batches, limits: ROOMY });
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed)).toEqual(["1", "3"]);
      await world.finish(claimed[1] as ClaimedTask, { to: "done", result: null });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(claimed[0] as ClaimedTask, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["2"]);
    });
  });

  describe("clearing a lane", () => {
    test("cancels what waits in it, of that tenant, in slices", async () => {
      const world = await open();
      await world.submit(
        { id: "running" },
        { id: "queued" },
        { id: "delayed", runAt: world.clock.now() + 10 },
        { id: "elsewhere", lane: OTHER_LANE },
        { id: "theirs", tenant: "zeta" },
      );
      await world.claim({ limit: 1 });
      const params = { tenant: TENANT, name: LANE, error: "lane_cleared", limit: 1 };
      const first = await world.storage.lanes.clear(params);
      await world.submit({ id: "new" });
      const second = await world.storage.lanes.clear({ ...params, cutoff: first.cutoff });
      expect([first, second].map(({ cancelled, more }) => [cancelled.map(({ id }) => id), more])).toEqual([
        [["queued"], true],
        [["delayed"], false],
      ]);
      expect(await endsOf(world, "queued")).toEqual([["queued", "cancelled", "lane_cleared"]]);
      const { tasks } = await world.storage.tasks.list({
        tenant: TENANT,
        states: ["queued"],
        agent: AGENT,
        limit: 9,
      });
      expect(tasks.map(({ id }) => id)).toEqual(["new", "elsewhere"]);
    });
  });

  describe("the settings of a lane", () => {
    test("are stored by name, and signalled to listeners", async () => {
      const world = await open();
      const kinds: string[] = [];
      world.storage.subscribe(({ kind }) => kinds.push(kind));
      await world.storage.lanes.put({ name: "vip", concurrency: 3, total: null });
      await world.storage.lanes.put({ name: "bulk", concurrency: 9, total: 20 });
      await world.storage.lanes.put({ name: "vip", concurrency: 4, total: 8 });
      await expect.poll(() => kinds).toContain("lanes");
      expect(await world.storage.lanes.settings()).toEqual([
        { name: "bulk", concurrency: 9, total: 20 },
        { name: "vip", concurrency: 4, total: 8 },
      ]);
    });

    test("do not hide how long its oldest task has waited", async () => {
      const world = await open();
      await world.submit({ id: "old", priority: 3 });
      const since = world.clock.now();
      world.clock.step(50);
      await world.submit({ id: "young", priority: 1 });
      const oldest = async () =>
        (await world.storage.lanes.list()).find(({ name }) => name === LANE)?.oldestAt ?? null;
      expect(await oldest()).toBe(since);
      await world.claim({ limit: 9 });
      expect(await oldest()).toBeNull();
    });
  });
}

import { describe, expect, test } from "vitest";
import { TAKEN_AT_ONCE } from "../../../model/session.ts";
import type { TaskSpec } from "../../../model/task.ts";
import type { ClaimedTask, NewTask, SendParams, SentMessage } from "../../storage.ts";
import {
  AGENT,
  customSpec,
  idsOf,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  OTHER_NODE,
  only,
  TENANT,
  type World,
} from "../world.ts";

const KEY = "user:42";
const SESSION = { key: KEY, maxConcurrent: 1 };
const DEFAULTS = { mode: "queue", cap: 10, drop: "old", debounceMs: 100 } as const;
const STEER_MS = 50;

interface Saying {
  readonly task?: Partial<NewTask>;
  readonly mode: SendParams["mode"];
  readonly defaults?: Partial<SendParams["defaults"]>;
}

function say(world: World, message: string, { task = {}, mode, defaults }: Saying): Promise<SentMessage> {
  const { spec, ...rest } = newTask({ id: message, ...task });
  return world.storage.sessions.send({
    task: {
      ...rest,
      origin: "message",
      session: SESSION,
      spec: { ...spec, work: { kind: "message", message } },
    },
    mode,
    maxConcurrent: null,
    defaults: { ...DEFAULTS, ...defaults },
    steerMs: STEER_MS,
  });
}

function steer(world: World, message: string, task: Partial<NewTask> = {}): Promise<SentMessage> {
  return say(world, message, { mode: "steer", task });
}

function collect(world: World, message: string, task: Partial<NewTask> = {}): Promise<SentMessage> {
  return say(world, message, { mode: "collect", task });
}

function accepted(sent: SentMessage) {
  if (sent.refused !== null) throw new Error("It was refused.");
  return sent;
}

function take(world: World, { task, token }: ClaimedTask, after = 0) {
  return world.storage.sessions.takeMessages({ seq: task.seq, token, after });
}

async function takenBy(world: World, claimed: ClaimedTask): Promise<string[]> {
  return (await take(world, claimed)).map(({ message }) => message);
}

async function messageOf(world: World, id: string): Promise<string | undefined> {
  const { work } = (await world.task(id)).spec;
  return work.kind === "message" ? work.message : undefined;
}

/** A world in which the task `running` of the session runs. */
async function openRunning(open: OpenWorld, task: Partial<NewTask> = {}) {
  const world = await open();
  await world.submit({ id: "running", session: SESSION, ...task });
  return { world, running: only(await world.claim({ limit: 9 })) };
}

async function endOf(world: World, id: string) {
  const { state, result, error } = await world.task(id);
  return { state, ...(result === undefined ? {} : { result }), error };
}

function describeSteer(open: OpenWorld): void {
  describe("a message in mode steer", () => {
    test("is taken by the attempt that runs, once, and ends with its task", async () => {
      const { world, running } = await openRunning(open);
      expect(accepted(await steer(world, "left")).task.state).toBe("queued");
      await steer(world, "right");
      expect(await takenBy(world, running)).toEqual(["left", "right"]);
      expect(await endOf(world, "left")).toEqual({ state: "queued", error: null });
      await world.finish(running, { to: "done", result: "turned" });
      expect(await endOf(world, "left")).toEqual({
        state: "done",
        result: { steeredInto: "running" },
        error: null,
      });
      const events = (await world.events()).map(({ type, taskId }) => [type, taskId]);
      expect(events.slice(-3)).toEqual([
        ["task.completed", "running"],
        ["task.completed", "left"],
        ["task.completed", "right"],
      ]);
      expect(await world.claim({ limit: 9 })).toEqual([]);
      expect(await world.storage.sessions.get({ tenant: TENANT, key: KEY })).toMatchObject({
        running: 0,
        queued: 0,
      });
    });

    test("is returned again until the attempt says that it has seen it", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "left");
      const [left] = await take(world, running);
      expect(left).toMatchObject({ taskId: "left", message: "left" });
      world.clock.step(STEER_MS);
      expect(await takenBy(world, running)).toEqual(["left"]);
      await steer(world, "right");
      const rest = await take(world, running, left?.position);
      expect(rest.map(({ taskId }) => taskId)).toEqual(["right"]);
    });

    test("waits as any other once its time is over", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "late");
      world.clock.step(STEER_MS);
      expect(await takenBy(world, running)).toEqual([]);
      await world.finish(running, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["late"]);
    });

    test("is taken only by an attempt of its own agent and session that holds its task", async () => {
      const { world, running } = await openRunning(open);
      await world.submit({ id: "elsewhere", session: { key: "other", maxConcurrent: 1 } }, { id: "alone" });
      const others = await world.claim({ limit: 9 });
      await steer(world, "to b", { agent: "b" });
      expect(await takenBy(world, running)).toEqual([]);
      await steer(world, "to a");
      for (const other of others) expect(await takenBy(world, other)).toEqual([]);
      expect(await takenBy(world, { ...running, token: running.token + 1_000 })).toEqual([]);
      expect(await takenBy(world, running)).toEqual(["to a"]);
    });

    test("is debounced as any other while nothing runs in its session", async () => {
      const world = await open();
      expect(accepted(await steer(world, "one")).task.state).toBe("delayed");
      expect(accepted(await steer(world, "two")).merged).toBe(true);
      expect(await messageOf(world, "one")).toBe("one\ntwo");
    });

    test("goes past messages that wait, which keep their order", async () => {
      const { world, running } = await openRunning(open);
      await say(world, "queued", { mode: "queue", defaults: { debounceMs: 0 } });
      await steer(world, "steered");
      expect(await takenBy(world, running)).toEqual(["steered"]);
      await world.finish(running, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["queued"]);
    });

    test.each([
      ["failed", { to: "failed", error: "no" } as const, { state: "failed", error: "no" }],
      ["done", { to: "done", result: 1 } as const, { state: "done", error: null }],
    ])("ends as the task of the attempt that took it: %s", async (_, settlement, end) => {
      const { world, running } = await openRunning(open);
      await steer(world, "left");
      await takenBy(world, running);
      await world.finish(running, settlement);
      expect(await endOf(world, "left")).toMatchObject(end);
    });

    test("ends with the task of the attempt that took it when that is stopped or cancelled", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "left");
      await takenBy(world, running);
      await world.storage.sessions.stop({ tenant: TENANT, key: KEY, scope: "oldest", limit: 9 });
      expect(await endOf(world, "left")).toEqual({ state: "cancelled", error: "stopped" });
    });

    test.each(["retried", "interrupted", "lost"])(
      "returns to its place when the attempt that took it is %s",
      async (how) => {
        const { world, running } = await openRunning(open, { maxRetriesIfLost: 1 });
        await steer(world, "steered");
        await say(world, "last", { mode: "queue", defaults: { debounceMs: 0 } });
        expect(await takenBy(world, running)).toEqual(["steered"]);
        if (how === "lost") {
          await world.crash(NODE);
          await world.storage.tasks.rescue({ node: NODE, limit: 9 });
        } else if (how === "retried") {
          await world.finish(running, { to: "delayed", error: "no", runAt: world.clock.now() + 1 });
          world.clock.step(1);
          await world.storage.tasks.promoteDue({ limit: 9 });
        } else {
          await world.finish(running, { to: "queued", error: "shutdown" });
        }
        const again = only(await world.claim({ node: OTHER_NODE, limit: 9 }));
        expect(again.task.id).toBe("running");
        // The attempt that lost it gets nothing more, the next one may take it anew while it is offered.
        expect(await takenBy(world, running)).toEqual([]);
        world.clock.step(STEER_MS);
        expect(await takenBy(world, again)).toEqual([]);
        const end = { to: "done", result: null } as const;
        await world.finish(again, end, OTHER_NODE);
        const next = only(await world.claim({ limit: 9, node: OTHER_NODE }));
        expect(next.task.id).toBe("steered");
        await world.finish(next, end, OTHER_NODE);
        expect(idsOf(await world.claim({ limit: 9, node: OTHER_NODE }))).toEqual(["last"]);
      },
    );

    test("may be taken by the next attempt after it returned", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "steered");
      await takenBy(world, running);
      await world.finish(running, { to: "queued", error: "shutdown" });
      const again = only(await world.claim({ limit: 9 }));
      expect(await takenBy(world, again)).toEqual(["steered"]);
    });

    test("that was taken is not dropped, and the cap does not count it", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "taken");
      await takenBy(world, running);
      const tight = { mode: "queue", defaults: { debounceMs: 0, cap: 1 } } as const;
      expect(accepted(await say(world, "one", tight)).cancelled).toEqual([]);
      expect(accepted(await say(world, "two", tight)).cancelled).toMatchObject([{ id: "one" }]);
      expect(await endOf(world, "one")).toEqual({ state: "cancelled", error: "queue_dropped" });
      expect(await endOf(world, "taken")).toEqual({ state: "queued", error: null });
    });

    test("that was taken can still be cancelled, and the attempt goes on", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "taken");
      await takenBy(world, running);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["taken"], error: null });
      await world.finish(running, { to: "done", result: null });
      expect(await endOf(world, "taken")).toEqual({ state: "cancelled", error: null });
    });

    test("is not started beside the attempt that took it, even if the session has room", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "taken");
      await takenBy(world, running);
      await world.storage.sessions.update({
        tenant: TENANT,
        key: KEY,
        defaultMax: 1,
        changes: { maxConcurrent: 3 },
      });
      await world.submit({ id: "later", session: SESSION });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["later"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
      await world.finish(running, { to: "queued", error: "shutdown" });
      expect(idsOf(await world.claim({ limit: 9 })).sort()).toEqual(["running", "taken"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("ends as all others when everything of its session is stopped or interrupted", async () => {
      for (const stop of ["all", "reset", "interrupt"] as const) {
        const { world, running } = await openRunning(open);
        await steer(world, "taken");
        await takenBy(world, running);
        if (stop === "interrupt") await say(world, "new", { mode: "interrupt" });
        else await world.storage.sessions.stop({ tenant: TENANT, key: KEY, scope: stop, limit: 9 });
        const error = { all: "stopped", reset: "session_reset", interrupt: "interrupted" }[stop];
        expect(await endOf(world, "taken")).toEqual({ state: "cancelled", error });
        expect(await world.storage.counters.recountAll()).toEqual([]);
      }
    });

    test("shows what holds it: until when it is offered, and then which task has taken it", async () => {
      const { world, running } = await openRunning(open);
      await steer(world, "steered");
      const offeredUntil = world.clock.now() + STEER_MS;
      const situation = async () =>
        (await world.storage.tasks.situation({ tenant: TENANT, id: "steered" }))?.session;
      expect(await situation()).toEqual({
        key: KEY,
        max: 1,
        active: ["running"],
        takenBy: null,
        offeredUntil,
      });
      await takenBy(world, running);
      expect(await situation()).toMatchObject({ takenBy: "running" });
    });

    test("is part of the turn that took it for later turns of the session", async () => {
      const world = await open();
      await say(world, "go", { mode: "queue", defaults: { debounceMs: 0 } });
      const running = only(await world.claim({ limit: 9 }));
      await steer(world, "left");
      await takenBy(world, running);
      await world.finish(running, { to: "done", result: "gone left" });
      await say(world, "where?", { mode: "queue", defaults: { debounceMs: 0 } });
      const { task, token } = only(await world.claim({ limit: 9 }));
      const read = await world.storage.sessions.readTurns({ seq: task.seq, token, limit: 9 });
      expect(read?.turns).toEqual([
        { taskId: "go", work: { kind: "message", message: "go\nleft" }, result: "gone left" },
      ]);
    });

    test("comes with others up to a number and a size, the rest later", async () => {
      const { world, running } = await openRunning(open);
      const count = TAKEN_AT_ONCE.messages + 1;
      for (let n = 0; n < count; n += 1)
        await say(world, `m${n}`, { mode: "steer", defaults: { cap: count } });
      const first = await take(world, running);
      expect(first).toHaveLength(TAKEN_AT_ONCE.messages);
      expect(await take(world, running, first.at(-1)?.position)).toHaveLength(1);

      const { world: other, running: large } = await openRunning(open);
      const long = "x".repeat(TAKEN_AT_ONCE.bytes);
      await steer(other, long, { id: "long" });
      await steer(other, "short");
      const [one, ...more] = await take(other, large);
      expect([one?.taskId, more.length]).toEqual(["long", 0]);
      expect(await take(other, large, one?.position)).toMatchObject([{ taskId: "short" }]);
    });
  });
}

function describeCollect(open: OpenWorld): void {
  describe("messages in mode collect", () => {
    test("become one message while the turn before them runs, and start with its end", async () => {
      const { world, running } = await openRunning(open);
      expect(accepted(await collect(world, "one"))).toMatchObject({
        merged: false,
        task: { state: "queued" },
      });
      world.clock.step(1_000_000);
      for (const message of ["two", "three"])
        expect(accepted(await collect(world, message))).toMatchObject({ merged: true, task: { id: "one" } });
      expect(await messageOf(world, "one")).toBe("one\ntwo\nthree");
      await world.finish(running, { to: "done", result: null });
      const collected = only(await world.claim({ limit: 9 }));
      expect(collected.task.id).toBe("one");
      expect(accepted(await collect(world, "four"))).toMatchObject({ merged: false, task: { id: "four" } });
    });

    test("start at once when nothing runs", async () => {
      const world = await open();
      await collect(world, "one");
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["one"]);
    });

    test.each(["queue", "collect"] as const)(
      "of mode %s is not joined beyond 65 536 characters",
      async (mode) => {
        const world = await open();
        const merged = async (id: string, length: number) =>
          accepted(await say(world, "é".repeat(length), { mode, task: { id } })).merged;
        expect(await merged("first", 60_000)).toBe(false);
        expect(await merged("fits", 5_535)).toBe(true);
        expect(await merged("beyond", 1)).toBe(false);
        expect(await merged("after", 1)).toBe(true);
      },
    );

    test("are not joined with other modes, agents or lanes, or past anything that came between", async () => {
      const { world } = await openRunning(open);
      await collect(world, "one");
      const merged = async (sent: Promise<SentMessage>) => accepted(await sent).merged;
      expect(await merged(say(world, "q", { mode: "queue", defaults: { debounceMs: 0 } }))).toBe(false);
      expect(await merged(collect(world, "two"))).toBe(false);
      expect(await merged(collect(world, "b", { agent: "b" }))).toBe(false);
      expect(await merged(collect(world, "lane", { agent: "b", lane: OTHER_LANE }))).toBe(false);
      await say(world, "delayed", { mode: "queue", task: { agent: "b", lane: OTHER_LANE } });
      expect(await merged(collect(world, "after", { agent: "b", lane: OTHER_LANE }))).toBe(false);
      await world.submit({ id: "task", session: SESSION, agent: "b", lane: OTHER_LANE });
      expect(await merged(collect(world, "last", { agent: "b", lane: OTHER_LANE }))).toBe(false);
      expect(await merged(collect(world, "joined", { agent: "b", lane: OTHER_LANE }))).toBe(true);
    });

    test("are not joined with those that have other rights, also not within a debounce window", async () => {
      const { world } = await openRunning(open);
      const merged = async (sent: Promise<SentMessage>) => accepted(await sent).merged;
      const keyed = { keyId: "key_1", agentId: null, via: "http" } as const;
      const makers: readonly Partial<TaskSpec>[] = [
        {},
        { createdBy: keyed },
        { createdBy: { ...keyed, keyId: "key_2" } },
        { createdBy: { ...keyed, keyId: "key_2", agentId: "a" } },
        { createdBy: keyed, reach: ["a"] },
        { createdBy: keyed, within: { taskId: "p", rootTaskId: "p", depth: 0 } },
        { createdBy: keyed, within: { taskId: "p", rootTaskId: "p", depth: 0 }, reach: ["a"] },
        { createdBy: keyed },
      ];
      const late = { mode: "queue", defaults: { debounceMs: 1_000 } } as const;
      for (const [n, maker] of makers.entries()) {
        const task = { spec: { ...customSpec(null), ...maker } };
        expect(await merged(collect(world, `a${n}`, task)), `${n}`).toBe(false);
        expect(await merged(collect(world, `b${n}`, task)), `${n}`).toBe(true);
      }
      for (const [n, maker] of makers.entries()) {
        const task = { spec: { ...customSpec(null), ...maker } };
        expect(await merged(say(world, `c${n}`, { ...late, task })), `${n}`).toBe(false);
        expect(await merged(say(world, `d${n}`, { ...late, task })), `${n}`).toBe(true);
      }
    });

    test("are joined by whichever client they came, as those of the first, also within a debounce window", async () => {
      const { world } = await openRunning(open);
      const merged = async (sent: Promise<SentMessage>) => accepted(await sent).merged;
      const key = { keyId: "key_1", agentId: null };
      const late = { mode: "queue", defaults: { debounceMs: 1_000 } } as const;
      const within = { taskId: "p", rootTaskId: "p", depth: 0 };
      for (const more of [{}, { within, reach: ["a"] }]) {
        const createdBy = { ...key, via: "dashboard" } as const;
        const task = { spec: { ...customSpec(null), createdBy, ...more } };
        // In another order, as a program may send it.
        const other = { client: "gateway/1.4", via: "http", agentId: null, keyId: "key_1" } as const;
        const later = { spec: { ...customSpec(null), ...more, createdBy: other } };
        const n = Object.keys(more).length;
        expect(await merged(collect(world, `a${n}`, task))).toBe(false);
        expect(await merged(collect(world, `b${n}`, later))).toBe(true);
        expect(await merged(say(world, `c${n}`, { ...late, task: later }))).toBe(false);
        expect(await merged(say(world, `d${n}`, { ...late, task }))).toBe(true);
        expect((await world.task(`a${n}`)).spec.createdBy).toEqual(createdBy);
        expect((await world.task(`c${n}`)).spec.createdBy).toEqual(other);
        expect(await messageOf(world, `c${n}`)).toBe(`c${n}\nd${n}`);
      }
    });

    test("are not added to one that has run before", async () => {
      const { world, running } = await openRunning(open);
      await collect(world, "one");
      await world.finish(running, { to: "done", result: null });
      await world.finish(only(await world.claim({ limit: 9 })), { to: "queued", error: "shutdown" });
      expect(accepted(await collect(world, "two")).merged).toBe(false);
    });

    test("do not make each other count for the cap", async () => {
      const { world } = await openRunning(open);
      const tight = { mode: "collect", defaults: { cap: 1, drop: "new" } } as const;
      await say(world, "one", tight);
      expect(accepted(await say(world, "two", tight)).merged).toBe(true);
      expect((await say(world, "b", { ...tight, task: { agent: "b" } })).refused).toEqual({
        waiting: 1,
        cap: 1,
      });
    });
  });
}

function describePost(open: OpenWorld): void {
  describe("an answer that is added to a session", () => {
    const post = (world: World, id: string, result: unknown = "answer") =>
      world.storage.sessions.post({
        task: newTask({
          id,
          origin: "message",
          session: SESSION,
          spec: { ...newTask({}).spec, work: { kind: "message", message: id } },
        }),
        result,
      });

    test("is done at once, beside what runs and waits there, and is added once", async () => {
      const { world, running } = await openRunning(open);
      await world.submit({ id: "waits", session: SESSION });
      await post(world, "posted");
      await post(world, "posted", "another");
      expect(await endOf(world, "posted")).toEqual({ state: "done", result: "answer", error: null });
      const events = await world.events();
      expect(events.slice(-2).map(({ type, taskId }) => [type, taskId])).toEqual([
        ["task.created", "posted"],
        ["task.completed", "posted"],
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
      await world.finish(running, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["waits"]);
    });

    test("creates the session, and is one of its turns", async () => {
      const world = await open();
      await post(world, "posted", null);
      await say(world, "next", { mode: "queue", defaults: { debounceMs: 0 } });
      const { task, token } = only(await world.claim({ limit: 9 }));
      const read = await world.storage.sessions.readTurns({ seq: task.seq, token, limit: 9 });
      expect(read?.turns).toEqual([
        { taskId: "posted", work: { kind: "message", message: "posted" }, result: null },
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });
}

export function describeSessionModes(open: OpenWorld): void {
  describeSteer(open);
  describeCollect(open);
  describePost(open);
  test("a session can have any mode as its own", async () => {
    const world = await open();
    for (const mode of ["steer", "collect"] as const)
      expect(
        await world.storage.sessions.update({ tenant: TENANT, key: KEY, defaultMax: 1, changes: { mode } }),
      ).toMatchObject({ mode });
    await world.submit({ id: "running", session: SESSION, agent: AGENT });
    await world.claim({ limit: 9 });
    await say(world, "one", { mode: null });
    expect(accepted(await say(world, "two", { mode: null })).merged).toBe(true);
  });
}

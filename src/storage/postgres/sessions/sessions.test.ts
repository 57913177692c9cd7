import { describe, expect, test } from "vitest";
import {
  allEvents,
  chance,
  done,
  drain,
  type Node,
  openNodes,
  peaks,
  prepareDatabases,
  settle,
  submit,
} from "../../../../test/postgres/several-nodes.ts";
import { SESSION_MODES } from "../../../model/session.ts";
import { customSpec, LANE, newTask, OTHER_LANE, TENANT } from "../../conformance/world.ts";
import type { ClaimedTask, SendParams, Storage } from "../../storage.ts";

prepareDatabases();

const DEFAULTS = { mode: "queue", cap: 10_000, drop: "old", debounceMs: 0 } as const;

function say(storage: Storage, key: string, message: string, params: Partial<SendParams> = {}) {
  return storage.sessions.send({
    task: newTask({
      origin: "message",
      session: { key, maxConcurrent: 1 },
      spec: { ...customSpec(null), work: { kind: "message", message } },
    }),
    mode: null,
    maxConcurrent: null,
    defaults: DEFAULTS,
    ...params,
  });
}

/** Lets whatever waits for its moment come, and runs everything, until nothing is left. */
async function finishEverything({ storage, node }: Node): Promise<void> {
  let dueAt: number | null;
  do {
    await storage.tasks.promoteDue({ limit: 1000 });
    await drain({ storage, node }, [LANE, OTHER_LANE], 10);
    dueAt = await storage.tasks.nextDueAt();
  } while (dueAt !== null);
}

describe("nodes that claim and finish tasks of the same sessions", () => {
  test("start them in the order they were accepted, and never more at once than may run", async () => {
    const { nodes, first } = await openNodes(2);
    const bounds = [1, 2, 3];
    const random = chance(7);
    for (let count = 0; count < 40; count += 1) {
      const tasks = bounds.map((maxConcurrent) => ({
        session: { key: `up-to-${maxConcurrent}`, maxConcurrent },
        agent: `agent-${maxConcurrent}`,
        priority: random(4),
      }));
      await submit((nodes[count % 2] as Node).storage, tasks);
    }
    await Promise.all(nodes.map((node, index) => workAtRandom(node, chance(index + 1))));
    expect(await first.counters.recountAll()).toEqual([]);
    await drain(nodes[0] as Node, [LANE], 9);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 120 });

    const events = await allEvents(first);
    expect(peaks(events, ({ session }) => session ?? "")).toEqual(bounds);
    for (const ofSession of Map.groupBy(events, ({ session }) => session).values()) {
      const ofType = (type: string) => ofSession.filter((event) => event.type === type);
      const started = new Set(ofType("task.started").map(({ taskId }) => taskId));
      expect([...started]).toEqual(ofType("task.created").map(({ taskId }) => taskId));
    }
    expect(await first.counters.recountAll()).toEqual([]);
  });

  /** Ends or puts back the attempts that it holds, and claims more. */
  async function workAtRandom({ storage, node }: Node, random: (below: number) => number): Promise<void> {
    let held: readonly ClaimedTask[] = [];
    for (let round = 0; round < 60; round += 1) {
      const ends = [done, done, { to: "queued", error: "again" }] as const;
      const finishes = settle(held).map((finish) => ({ ...finish, settlement: ends[random(3)] ?? done }));
      const claims = [{ lane: LANE, limit: random(4) }];
      held = (await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
    }
    await storage.tasks.finishAndClaim({ node, finishes: settle(held), progress: [], claims: [] });
  }
});

describe("messages that come through two connections while the ones before them are promoted", () => {
  test("are each part of one run, whose id the caller got", async () => {
    const { nodes, first } = await openNodes(3);
    const [one, two, runner] = nodes as [Node, Node, Node];
    let talking = true;
    const running = (async () => {
      while (talking) await runner.storage.tasks.promoteDue({ limit: 10 });
      await finishEverything(runner);
    })();
    const talked = await Promise.all([talk(one), talk(two)]);
    talking = false;
    await running;

    const { tasks } = await first.tasks.list({ tenant: TENANT, session: KEY, limit: 1000 });
    const textOf = new Map(tasks.map(({ id, spec }) => [id, JSON.stringify(spec.work)]));
    for (const { id, text } of talked.flat()) expect(textOf.get(id)).toContain(text);
    const runs = tasks
      .toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0) || a.seq - b.seq)
      .map(({ spec: { work } }) => (work.kind === "message" ? work.message : ""));
    const said = runs.join("\n").split("\n");
    expect(said.toSorted()).toEqual(
      talked
        .flat()
        .map(({ text }) => text)
        .sort(),
    );
    for (const mine of talked) {
      const texts = mine.map(({ text }) => text);
      expect(said.filter((text) => texts.includes(text))).toEqual(texts);
    }
    expect(tasks.length).toBe(talked.flat().filter(({ merged }) => !merged).length);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  const KEY = "user:42";

  /** Sends one message after the other, as fast as it can, and returns the outcome of each. */
  async function talk({ storage, node }: Node) {
    const answers: { id: string; text: string; merged: boolean }[] = [];
    for (let count = 0; count < 80; count += 1) {
      const text = `<${node} ${count}>`;
      const sent = await say(storage, KEY, text, { defaults: { ...DEFAULTS, debounceMs: 4 } });
      if (sent.refused !== null) throw new Error("There is room for all of them.");
      answers.push({ id: sent.task.id, text, merged: sent.merged });
    }
    return answers;
  }
});

describe("messages, stops, resets and ends on four connections at once", () => {
  test("reach no caller as an error and leave every counter right", async () => {
    const { nodes, first } = await openNodes(4);
    await Promise.all(nodes.map((node, index) => doAnything(node, chance(index + 1))));
    expect(await first.counters.recountAll()).toEqual([]);
    await finishEverything(nodes[0] as Node);
    expect(await first.counters.recountAll()).toEqual([]);
    const { sessions } = await first.sessions.list({ tenant: TENANT, limit: 100 });
    expect(sessions).toHaveLength(SESSIONS);
    for (const { running, queued } of sessions) expect([running, queued]).toEqual([0, 0]);
    const counts = await first.tasks.counts({ tenant: TENANT });
    expect(Object.keys(counts).sort()).toEqual(["cancelled", "done", "failed"]);
    const errors = new Set((await allEvents(first)).map(({ data }) => data?.error));
    expect([...errors]).toEqual(
      expect.arrayContaining(["stopped", "session_reset", "interrupted", "queue_dropped"]),
    );
  });

  const ROUNDS = 120;
  const SESSIONS = 3;

  async function doAnything({ storage, node }: Node, random: (below: number) => number): Promise<void> {
    let held: readonly ClaimedTask[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const key = `session-${random(SESSIONS)}`;
      switch (random(8)) {
        case 0:
        case 1:
        case 2: {
          const mode = SESSION_MODES[random(12)] ?? null;
          const defaults = { ...DEFAULTS, cap: 4, debounceMs: random(2) * 5 };
          await say(storage, key, "hello", { mode, defaults });
          break;
        }
        case 3: {
          const session = { key, maxConcurrent: 1 + random(3) };
          await submit(storage, [{ session }, { session, lane: OTHER_LANE }, { session, priority: 0 }]);
          break;
        }
        case 4:
          await stop(storage, key, (["oldest", "all", "reset"] as const)[random(3)] ?? "all");
          break;
        case 5:
          await storage.tasks.promoteDue({ limit: 5 });
          break;
        default: {
          const ends = [done, { to: "failed", error: "no" }, { to: "queued", error: "again" }] as const;
          const finishes = settle(held).map((finish) => ({
            ...finish,
            settlement: ends[random(3)] ?? done,
            usage: { inputTokens: 1, outputTokens: 1, contextTokens: random(1_000), contextWindow: 1_000 },
          }));
          const claims = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: random(4) }));
          held = (await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
        }
      }
    }
    await storage.tasks.finishAndClaim({ node, finishes: settle(held), progress: [], claims: [] });
  }

  /** In slices, as the library does it. */
  async function stop(storage: Storage, key: string, scope: "oldest" | "all" | "reset"): Promise<void> {
    const params = { tenant: TENANT, key, scope, limit: 2 };
    let { more, cutoff } = await storage.sessions.stop(params);
    while (more) ({ more, cutoff } = await storage.sessions.stop({ ...params, cutoff }));
  }
});

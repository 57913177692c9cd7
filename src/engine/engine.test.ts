import fc from "fast-check";
import { expect, test } from "vitest";
import { makeEngine, newTask, ROOMY } from "../../test/support/engine.ts";
import { asSharedStorage, away, openMemory } from "../../test/support/storages.ts";
import type { Executor } from "../executors/executor.ts";
import { isTerminal } from "../model/task-state.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";

/** What a run is made of: each number is a share of a hundred or an amount, and everything follows from the seed. */
interface Plan {
  readonly seed: number;
  /** How often a call of a node to the storage fails before it is made, or loses its response afterwards. */
  readonly faultPercent: number;
  readonly steps: number;
}

const plans = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  faultPercent: fc.integer({ min: 0, max: 20 }),
  steps: fc.integer({ min: 5, max: 40 }),
});

test("whatever fails on the way, every task ends once and never runs twice at a time", async () => {
  await fc.assert(fc.asyncProperty(plans, liveThrough), { numRuns: 25 });
}, 60_000);

async function liveThrough({ seed, faultPercent, steps }: Plan): Promise<void> {
  const random = randomFrom(seed);
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const doubled: string[] = [];
  const live = new Map<string, Set<AbortSignal>>();
  const weather = { faultPercent, cutOff: new Set<string>() };
  const nodes: Awaited<ReturnType<typeof makeEngine>>[] = [];
  for (const node of ["north", "south"]) {
    const spoil = () => {
      if (weather.cutOff.has(node) || random() * 100 < weather.faultPercent) throw away();
    };
    const meddler = { before: spoil, after: spoil };
    const executor = whimsical({ random, clock, live, doubled });
    nodes.push(
      await makeEngine({ node, clock, storage, executor, meddler, concurrency: { tasks: 2, main: 1 } }),
    );
  }
  // Word of a pre-emption reaches every node at once: the task that gave way may start again right then.
  storage.subscribe((signal) => {
    if (signal.kind !== "fenced" || signal.reason !== "preempted") return;
    for (const { engine } of nodes) engine.onSignal(signal);
  });
  const starting = nodes.map(({ engine }) => startAtLast(() => engine.start(), clock));
  await clock.advance(2_000);
  await Promise.all(starting);

  const ids: string[] = [];
  for (let step = 0; step < steps; step++) {
    const [node] = [nodes[Math.floor(random() * nodes.length)]];
    if (node === undefined) continue;
    await oneOf(random, [
      async () => {
        const bounded = { id: `batch-${step}`, tenant: "default", parallelism: 2, callbackUrl: null };
        const batches = random() < 0.3 ? [bounded] : [];
        const tasks = Array.from({ length: 1 + Math.floor(random() * 12) }, () => ({
          ...randomTask(random, clock),
          batch: batches[0]?.id ?? null,
        }));
        ids.push(...tasks.map(({ id }) => id));
        // Straight into the storage: what the intake does about faults is its own tests' affair.
        await storage.tasks.insert({ tasks, batches, limits: ROOMY });
        node.engine.onSignal({ kind: "work" });
      },
      async () => {
        const id = ids[Math.floor(random() * ids.length)] ?? "none";
        const [cancelled] = await storage.tasks.cancel({ tenant: "default", ids: [id], error: null });
        // The word of it reaches the nodes, or it does not.
        if (cancelled?.found && cancelled.was === null && cancelled.token !== null && random() < 0.5) {
          for (const { engine } of nodes) engine.fence([cancelled.token], "cancelled");
        }
      },
      async () => void weather.cutOff.add(random() < 0.5 ? "north" : "south"),
      async () => weather.cutOff.clear(),
      async () => clock.set(clock.now() + Math.floor(random() * 40_000) - 10_000),
      () => clock.advance(Math.floor(random() * 20_000)),
      () => clock.advance(Math.floor(random() * 500)),
    ]);
    await settle();
  }

  weather.faultPercent = 0;
  weather.cutOff.clear();
  await clock.advance(300_000);
  expect(doubled).toEqual([]);
  const tasks = await Promise.all(ids.map((id) => storage.tasks.get({ tenant: "default", id })));
  expect(tasks.filter((task) => task !== null && !isTerminal(task.state))).toEqual([]);
  for (const task of tasks) {
    const open = task?.attempts.filter(({ endedAt }) => endedAt === null) ?? [];
    expect(open).toEqual([]);
  }
  expect(await storage.counters.recountAll()).toEqual([]);
  expect(nodes.map(({ engine }) => engine.running)).toEqual([0, 0]);
  await Promise.all(nodes.map(({ engine }) => engine.drain(0)));
}

/** Returns, throws, waits, ignores its signal; and sees to it that no task is worked on twice at a time. */
function whimsical(params: {
  random: () => number;
  clock: ManualClock;
  /** The signals of the attempts that run, by task. */
  live: Map<string, Set<AbortSignal>>;
  /** Tasks that began while an earlier attempt of theirs had not been aborted. */
  doubled: string[];
}): Executor {
  const { random, clock, live, doubled } = params;
  return async (task, { signal, progress }) => {
    const running = live.get(task.taskId) ?? new Set();
    live.set(task.taskId, running);
    if ([...running].some(({ aborted }) => !aborted)) doubled.push(task.taskId);
    running.add(signal);
    try {
      progress(random());
      const whim = random();
      if (whim < 0.3) return whim;
      if (whim < 0.5) throw new Error("on a whim");
      await new Promise<void>((resolve) => {
        clock.setTimer(random() * 30_000, resolve);
        if (whim < 0.8) signal.addEventListener("abort", () => resolve());
      });
      return "late";
    } finally {
      running.delete(signal);
    }
  };
}

function randomTask(random: () => number, clock: ManualClock) {
  return newTask({
    agent: `agent-${Math.floor(random() * 3)}`,
    lane: random() < 0.7 ? "tasks" : "main",
    priority: random() < 0.2 ? 0 : 2,
    preemptible: random() < 0.5,
    runAt: random() < 0.2 ? clock.now() + Math.floor(random() * 20_000) : null,
    deadline: random() < 0.2 ? clock.now() + 30_000 + Math.floor(random() * 20_000) : null,
    timeoutMs: 5_000 + Math.floor(random() * 20_000),
    maxRetriesIfLost: Math.floor(random() * 3),
    retryPolicy: { maxRetries: Math.floor(random() * 3) },
  });
}

async function startAtLast(start: () => Promise<void>, clock: ManualClock): Promise<void> {
  for (;;) {
    try {
      return await start();
    } catch {
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
    }
  }
}

async function oneOf(random: () => number, choices: readonly (() => Promise<void>)[]): Promise<void> {
  await choices[Math.floor(random() * choices.length)]?.();
}

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

import { expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { meddle, openMemory } from "../../../test/support/storages.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { newWorker } from "../../storage/conformance/workers/workers.ts";
import type { AssignedTask, WorkerPoll } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { MetricsByTenant } from "../work/metrics-by-tenant.ts";
import { WorkerDispatcher } from "./worker-dispatcher.ts";
import { POLLS_MAX } from "./worker-polls.ts";

/** `claimed`: what each poll gets; left out: what the storage has for it. `refused`: the ends that cannot be stored. */
async function openDispatcher({
  claimed,
  refused = [],
}: {
  claimed?: (poll: WorkerPoll) => AssignedTask[];
  refused?: readonly number[];
} = {}) {
  const clock = new ManualClock();
  const written: number[][] = [];
  const asked: string[][] = [];
  const shares: number[] = [];
  const reported: unknown[][] = [];
  const memory = await openMemory(clock);
  const exchange: typeof memory.workers.exchange = async ({ polls }) => {
    return { finished: [], claimed: polls.map((each) => claimed?.(each) ?? []), expired: [], held: false };
  };
  const workers = { ...memory.workers, ...(claimed && { exchange }) };
  const storage = meddle(
    { ...memory, workers },
    {
      before: ({ operation, params }) => {
        if (operation === "workers.exchange") {
          written.push(params.finishes.map(({ token }: { token: number }) => token));
          asked.push(params.polls.map(({ worker }: { worker: string }) => worker));
          shares.push(...params.polls.map(({ max }: { max: number }) => max));
          reported.push(params.progress.map(({ progress }: { progress: unknown }) => progress));
          if (written.at(-1)?.some((token) => refused.includes(token))) throw new Error("no room for it");
        }
      },
    },
  );
  const dispatcher = new WorkerDispatcher({
    ...{ clock, log: new RecordingLog(), random: () => 0.5, storage },
    metrics: new MetricsByTenant(),
    tenantPollsMax: () => POLLS_MAX,
    agentsVersion: () => 0,
    onRetryAt: () => {},
    onEnded: () => {},
    onAssigned: () => {},
    onPutBack: () => {},
  });
  const finish = (tenant: string, token: number) =>
    dispatcher.finish({
      finish: {
        worker: "wrk_1",
        seq: token,
        token,
        settlement: { to: "done", result: null },
        recorded: true,
      },
      record: { tenant, agent: "a", lane: "tasks", callbackUrl: null },
    });
  const poll = async (tenant: string, agents: readonly string[], slots = 1) => {
    const registered = await storage.workers.register(newWorker({ tenant, agents }));
    if (!("id" in registered)) throw new Error("It was not registered.");
    void dispatcher.poll({
      worker: { id: registered.id, tenant, agents, slots },
      claimId: registered.id,
      max: slots,
      agents: null,
      except: () => [],
      waitMs: 25_000,
      gone: new AbortController().signal,
    });
    return registered.id;
  };
  return { dispatcher, finish, poll, written, asked, shares, reported };
}

function assignedTask(n: number, bytes: number): AssignedTask {
  const task = {
    tenant: "acme",
    agent: "py",
    lane: "tasks",
    seq: n,
    attempts: [] as const,
  } as Partial<TaskRecord>;
  return { token: n, nonce: "", task: task as TaskRecord, bytes, assignedAt: 0 };
}

test("many ends of one tenant do not delay those of another: each transaction takes them in turn", async () => {
  const { dispatcher, finish, written } = await openDispatcher();
  const ends = Array.from({ length: 450 }, (_, index) => finish("acme", index + 1));
  ends.push(finish("zeta", 1_001), finish("zeta", 1_002));
  while (written.flat().length < 452) await dispatcher.tick();
  expect(written.map(({ length }) => length)).toEqual([200, 200, 52]);
  expect(written[0]?.slice(0, 5)).toEqual([1, 1_001, 2, 1_002, 3]);
  // None of them was held by that worker.
  expect(new Set(await Promise.all(ends))).toEqual(new Set([null]));
});

test("ends that arrive in one turn of the event loop after the other share a transaction, if there are not too many turns", async () => {
  const { dispatcher, finish, written } = await openDispatcher();
  const arrive = (from: number, to: number): Promise<unknown> => {
    const end = finish("acme", from);
    return from === to ? end : Promise.all([end, new Promise(setImmediate).then(() => arrive(from + 1, to))]);
  };
  const few = arrive(1, 5);
  await dispatcher.tick();
  await few;
  expect(written).toEqual([[1, 2, 3, 4, 5]]);
  const many = arrive(101, 150);
  await dispatcher.tick();
  expect(written[1]?.length).toBeLessThan(20);
  for (let turn = 0; turn < 50; turn++) {
    await dispatcher.tick();
    await new Promise(setImmediate);
  }
  await many;
  expect(written.flat()).toHaveLength(55);
});

test("reports of progress that wait to be written are one for each attempt, the last", async () => {
  const { dispatcher, reported } = await openDispatcher();
  const report = (token: number, progress: number) =>
    dispatcher.report({ worker: "wrk_1", seq: token, token, progress });
  const all = Array.from({ length: 300 }, (_, n) => report(n % 3, n));
  await dispatcher.tick();
  await Promise.all(all);
  expect(reported).toEqual([[297, 298, 299]]);
});

test("an end that cannot be stored fails for its own caller only: the others are stored, and progress waits no longer", async () => {
  const { dispatcher, finish, poll, written, asked } = await openDispatcher({ refused: [2] });
  const ends = Promise.allSettled([1, 2, 3].map((token) => finish("acme", token)));
  const progress = dispatcher.report({ worker: "wrk_1", seq: 4, token: 4, progress: "half" });
  const worker = await poll("acme", ["py"]);
  await dispatcher.tick().catch(() => undefined);
  await progress;
  expect((await ends).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(written).toEqual([[1, 2, 3], [1], [2], [3]]);
  await dispatcher.tick();
  expect(asked.at(-1)).toEqual([worker]);
});

test("an end is stored although a poll of the same transaction fails", async () => {
  const claimed = () => {
    throw new Error("no tasks");
  };
  const { dispatcher, finish, poll } = await openDispatcher({ claimed });
  const end = finish("acme", 1);
  await poll("acme", ["py"]);
  await dispatcher.tick().catch(() => undefined);
  expect(await end).toBe(null);
});

test("polls that want more than an exchange may assign get equal shares, smaller ones once tasks are large", async () => {
  let bytes = 1_000;
  const claimed = ({ max }: WorkerPoll) => Array.from({ length: max }, (_, n) => assignedTask(n, bytes));
  const { dispatcher, poll, shares } = await openDispatcher({ claimed });
  const ask = async () => {
    shares.length = 0;
    for (let n = 0; n < 4; n++) await poll("acme", ["py"], 200);
    await dispatcher.tick();
    return shares;
  };
  expect(await ask()).toEqual([25, 25, 25, 25]);
  expect(await ask()).toEqual([50, 50, 50, 50]);
  expect(await ask()).toEqual([100, 100, 100, 100]);
  bytes = 1_048_576;
  expect(await ask()).toEqual([100, 100, 100, 100]);
  // Together they had 400 MiB.
  expect(await ask()).toEqual([16, 16, 16, 16]);
  bytes = 1_000;
  await ask();
  expect(await ask()).toEqual([32, 32, 32, 32]);
});

test("an exchange asks for 200 polls at most, of each tenant in turn, and the next ones for the others", async () => {
  const { dispatcher, poll, asked } = await openDispatcher();
  const many: string[] = [];
  for (let n = 0; n < 450; n++) many.push(await poll("acme", ["py", `other ${n}`]));
  const few = [await poll("zeta", ["py"]), await poll("zeta", ["py", "other"])];
  const ask = async () => {
    asked.length = 0;
    let nextMs = 0;
    while (nextMs === 0) nextMs = await dispatcher.tick();
    return asked.map((ids) => ids.length);
  };
  expect(await ask()).toEqual([200, 200, 52]);
  expect(asked[0]).toEqual(expect.arrayContaining(few));
  expect(asked.flat().toSorted()).toEqual([...many, ...few].toSorted());
  dispatcher.wakeFor(["py"]);
  expect(await ask()).toEqual([200, 200, 52]);
  dispatcher.wakeFor(["other 7"]);
  expect(await ask()).toEqual([1]);
  await dispatcher.stop();
});

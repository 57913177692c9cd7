import { afterAll, expect, onTestFinished, test } from "vitest";
import { createRota, type LocalTenant, type Rota, type Run, type Tenant } from "../src/index.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { until } from "../src/testing/index.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

/** So many nodes that share one PostgreSQL, with the time of the real world. */
async function openNodes(count: number): Promise<Rota[]> {
  const { url } = await copies.copy();
  const nodes: Rota[] = [];
  for (let node = 0; node < count; node++) {
    const rota = await createRota({ storage: url });
    onTestFinished(() => rota.stop({ graceMs: 0 }));
    nodes.push(rota);
  }
  return nodes;
}

/** Oldest first. */
async function runsOf(rota: Rota, id: number): Promise<Run[]> {
  return [...(await rota.schedules.runs(id)).runs].reverse();
}

const everySecond = { kind: "every", everyMs: 1_000 } as const;

test("nodes fire every moment once between them, and the schedules of one that left", async () => {
  const nodes = await openNodes(3);
  const [first, second, third] = nodes as [Rota, Rota, Rota];
  for (const rota of nodes) await rota.start();
  const ids: number[] = [];
  for (let made = 0; made < 10; made++) {
    const input = { schedule: everySecond, message: "x", overlap: "queue" } as const;
    ids.push((await first.schedules.create(input)).scheduled_task.id);
  }
  const untilRun = (count: number) =>
    until(async () => {
      const all = await Promise.all(ids.map((id) => runsOf(third, id)));
      return all.every((runs) => runs.length >= count);
    }, `${count} or more runs of each`);
  await untilRun(1);
  await first.stop({ graceMs: 0 });
  await untilRun(2);
  await second.drain({ graceMs: 0 });
  await untilRun(3);
  for (const id of ids) {
    const moments = (await runsOf(third, id)).map(({ due_at }) => due_at);
    expect(moments).toEqual(moments.map((_, place) => (moments[0] as number) + place));
  }
});

test("nodes that fire and are asked to run at once never go beyond max_runs", async () => {
  const nodes = await openNodes(3);
  const [first] = nodes as [Rota];
  for (const rota of nodes) await rota.start();
  const input = { schedule: everySecond, message: "x", overlap: "allow", max_runs: 7 } as const;
  const ids: number[] = [];
  for (let made = 0; made < 5; made++) ids.push((await first.schedules.create(input)).scheduled_task.id);
  const isCompleted = async (id: number) => (await first.schedules.get(id)).status === "completed";
  await until(async () => {
    // Each node asks for more while all of them fire.
    await Promise.allSettled(nodes.flatMap((rota) => ids.map((id) => rota.schedules.run(id))));
    return (await Promise.all(ids.map(isCompleted))).every(Boolean);
  }, "all to be completed");
  for (const id of ids) {
    expect(await runsOf(first, id)).toHaveLength(7);
    expect(await first.schedules.get(id)).toMatchObject({ run_count: 7, next_fire_at: 0 });
  }
});

test("runs that fail at once on several nodes pause their schedule once", async () => {
  const nodes = await openNodes(3);
  const [first] = nodes as [Rota];
  for (const rota of nodes) {
    rota.agent("failing", () => {
      throw new Error("no luck");
    });
    await rota.start();
  }
  const { id } = (
    await first.schedules.create({
      schedule: "every day at 09:00",
      message: "x",
      agent: "failing",
      overlap: "allow",
      retry: { max_retries: 0 },
      pause_after_failures: 4,
    })
  ).scheduled_task;
  await Promise.all(nodes.flatMap((rota) => [1, 2, 3].map(() => rota.schedules.run(id))));
  const hasEnded = async () => (await runsOf(first, id)).every(({ status }) => status === "failed");
  await until(hasEnded, "all to end");
  expect(await first.schedules.get(id)).toMatchObject({
    status: "paused",
    paused_reason: "failed runs in a row: 4",
    consecutive_failures: 9,
    run_count: 9,
  });
  const kinds: unknown[] = [];
  for await (const { kind } of first.notifications({ after: 0 })) {
    kinds.push(kind);
    if (kinds.length === 19) break;
  }
  expect(kinds.filter((kind) => kind === "schedule.paused")).toHaveLength(1);
});

test("a run that is replaced is stopped on whichever node it runs", async () => {
  const [running, asking] = (await openNodes(2)) as [Rota, Rota];
  const stopped: string[] = [];
  running.agent("slow", ({ taskId }, { signal }) => {
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        stopped.push(taskId);
        reject(signal.reason);
      });
    });
  });
  asking.agent("slow", {});
  await running.start();
  const { scheduled_task } = await asking.schedules.create({
    schedule: "every day at 09:00",
    message: "x",
    agent: "slow",
    overlap: "replace",
  });
  const { id } = scheduled_task;
  await asking.schedules.run(id);
  await until(async () => (await runsOf(asking, id))[0]?.attempt === 1, "the first to run");
  await asking.schedules.run(id);
  await until(() => stopped.length === 1, "the first to be stopped");
  const [first, second] = await runsOf(asking, id);
  expect(stopped).toEqual([first?.queue_task_id]);
  expect(first).toMatchObject({ status: "failed", reason: "replaced" });
  expect(second).toMatchObject({ status: "running" });
});

test("a schedule made on one node for a moment that is near is fired by another", async () => {
  const [asking, firing] = (await openNodes(2)) as [Rota, Rota];
  await firing.start();
  await firing.schedules.create({ schedule: "every day at 09:00", message: "later" });
  // Far enough for a busy machine to store it before: what is past is refused.
  const atMs = Date.now() + 1_500;
  const { scheduled_task } = await asking.schedules.create({ schedule: { kind: "at", atMs }, message: "x" });
  await until(async () => (await asking.schedules.get(scheduled_task.id)).status === "completed", "its end");
  const [run] = await runsOf(asking, scheduled_task.id);
  expect(run).toMatchObject({ status: "succeeded", due_at: Math.floor(atMs / 1_000), attempt: 1 });
});

test("nodes that make schedules at once never go beyond those that a tenant may have", async () => {
  const nodes = await openNodes(3);
  const [first] = nodes as [Rota];
  const { id } = await first.tenants.create({ name: "acme", limits: { maxSchedules: 7 } });
  const made = await Promise.allSettled(
    nodes.flatMap((rota) =>
      Array.from({ length: 8 }, () =>
        rota.tenant(id).schedules.create({ schedule: "every hour", message: "x" }),
      ),
    ),
  );
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(7);
  expect(await first.tenant(id).schedules.status()).toMatchObject({ active: 7 });
});

test("nodes that run a schedule at once never have more than a hundred of its runs wait", async () => {
  const nodes = await openNodes(3);
  const [first] = nodes as [Rota];
  const input = { schedule: "every hour", message: "x", overlap: "allow" } as const;
  const { id } = (await first.schedules.create(input)).scheduled_task;
  const answers = await Promise.all(
    nodes.map(async (rota) => {
      const own: string[] = [];
      for (let asked = 0; asked < 38; asked++) own.push((await rota.schedules.run(id)).reason ?? "ran");
      return own;
    }),
  );
  expect(answers.flat().filter((answer) => answer === "ran")).toHaveLength(100);
  expect(answers.flat().filter((answer) => answer === "too_many_waiting")).toHaveLength(14);
  expect(await first.schedules.get(id)).toMatchObject({ run_count: 100 });
});

test("due times of one tenant, however many, come in turn with those of another", async () => {
  const [rota] = (await openNodes(1)) as [Rota];
  const tenants: Tenant[] = [];
  for (const name of ["many", "one"]) tenants.push(await rota.tenants.create({ name }));
  const [many, one] = tenants.map(({ id }) => rota.tenant(id)) as [LocalTenant, LocalTenant];
  const input = { schedule: everySecond, message: "x" };
  for (let made = 0; made < 300; made += 20) {
    await Promise.all(Array.from({ length: 20 }, () => many.schedules.create(input)));
  }
  const { id, next_fire_at } = (await one.schedules.create(input)).scheduled_task;
  // All of them have come by the time it starts, that of the other tenant last.
  await until(() => Date.now() > (next_fire_at + 1) * 1_000, "the due time");
  await rota.start();
  await until(async () => (await one.schedules.get(id)).run_count > 0, "the other's run");
  const first = (await one.runs.list()).runs.at(-1);
  const before = await many.runs.list({ cursor: String(first?.id) });
  expect(before.count).toBeLessThanOrEqual(50);
});

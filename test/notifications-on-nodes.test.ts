import { afterAll, expect, onTestFinished, test } from "vitest";
import { createRota, type Notification, type Rota } from "../src/index.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

/** Nodes that share one PostgreSQL, with the time of the real world: the database has its own clock. */
async function openNodes(count: number): Promise<Rota[]> {
  const { url } = await copies.copy();
  const nodes: Rota[] = [];
  for (let n = 0; n < count; n++) {
    const rota = await createRota({ storage: url });
    onTestFinished(() => rota.stop({ graceMs: 0 }));
    nodes.push(rota);
  }
  return nodes;
}

async function take(notifications: AsyncIterable<Notification>, count: number): Promise<Notification[]> {
  const taken: Notification[] = [];
  for await (const notification of notifications) if (taken.push(notification) === count) break;
  return taken;
}

test("every node sends the same, in the same order and without a gap, whichever of them does it", async () => {
  const nodes = await openNodes(3);
  const readers = nodes.map((rota) => rota.notifications());
  await Promise.all(readers.map(({ ready }) => ready));
  for (const rota of nodes) await rota.start();
  // Far enough for a busy machine to store all before: what is past is refused.
  const schedule = { kind: "at", atMs: Date.now() + 3_000 } as const;
  const made = nodes.flatMap((rota) =>
    Array.from({ length: 20 }, (_, n) => rota.schedules.create({ schedule, message: `look ${n}` })),
  );
  await Promise.all(made);
  const notified = await Promise.all(readers.map((reader) => take(reader, 120)));
  expect(notified[1]).toEqual(notified[0]);
  expect(notified[2]).toEqual(notified[0]);
  const ids = (notified[0] ?? []).map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted((one, other) => one - other));
  const kinds = Map.groupBy(notified[0] ?? [], ({ task_id }) => task_id).values();
  for (const ofOne of kinds) {
    expect(ofOne.map(({ kind }) => kind)).toEqual(["run.started", "run.completed"]);
  }
  // A later reader gets the same from the log.
  expect(await take((nodes[0] as Rota).notifications({ after: 0 }), 120)).toEqual(notified[0]);
});

test("a schedule that an agent makes by a writ on one node is listed and changed on the others", async () => {
  const [front, back] = (await openNodes(2)) as [Rota, Rota];
  await front.agents.create({ id: "parrot", executor: { type: "echo" }, writs: true });
  await back.start();
  const { taskId } = await front.tasks.submit({
    agentId: "parrot",
    message: "/schedule in 1 hour: look again",
  });
  expect((await front.tasks.wait(taskId)).result).toContain("OK: scheduled #1 in 1 hour (");
  const notifications = back.notifications();
  await notifications.ready;
  const text = "/schedule list\n/schedule cancel 1";
  const { ok, output } = await front.writs.carryOut({ agent: "parrot", text });
  expect([ok, output.includes("→ parrot: look again")]).toEqual([true, true]);
  expect((await notifications.next()).value).toMatchObject({ kind: "schedule.canceled", task_id: 1 });
  await notifications.return?.();
});

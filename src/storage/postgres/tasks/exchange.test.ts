import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  allEvents,
  chance,
  type Node,
  openNodes,
  peaks,
  prepareDatabases,
  settle,
  signalsArrived,
  submit,
  tasksOf,
} from "../../../../test/postgres/several-nodes.ts";
import { LANE, OTHER_LANE, TENANT } from "../../conformance/world.ts";
import type { ClaimedTask, FinishAndClaimParams, FinishedAndClaimed, Storage } from "../../storage.ts";

prepareDatabases();

type Asked = Partial<Omit<FinishAndClaimParams, "node">>;

function exchange({ storage, node }: Node, asked: Asked): Promise<FinishedAndClaimed> {
  return storage.tasks.finishAndClaim({ node, finishes: [], progress: [], claims: [], ...asked });
}

/**
 * Begins these exchanges, in order, while the write lock is taken: the first has the turn, the others leave requests. Then
 * `meanwhile`, and the lock is free. Returns how each exchange ended.
 */
async function together(
  admin: Client,
  exchanges: readonly (() => Promise<FinishedAndClaimed>)[],
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<PromiseSettledResult<FinishedAndClaimed>[]> {
  await admin.query("select pg_advisory_lock(7682)");
  const begun: Promise<FinishedAndClaimed>[] = [];
  for (const [index, begin] of exchanges.entries()) {
    const ended = begin();
    ended.catch(() => undefined);
    begun.push(ended);
    if (index === 0) await expect.poll(() => waiting(admin, 7682)).toHaveLength(1);
    else await expect.poll(() => waiting(admin, 7684)).toHaveLength(index);
  }
  await meanwhile();
  await admin.query("select pg_advisory_unlock(7682)");
  return Promise.allSettled(begun);
}

/** The processes that wait for this lock, the first in the queue first. */
async function waiting(admin: Client, lock: number): Promise<number[]> {
  const { rows } = await admin.query(
    `select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted
        and database = (select oid from pg_database where datname = current_database()) order by waitstart, pid`,
    [lock],
  );
  return rows.map(({ pid }) => pid);
}

function ended(results: readonly PromiseSettledResult<FinishedAndClaimed>[]): FinishedAndClaimed[] {
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/** The rows of the log with this type, with how many events each has. A step appends one. */
async function rowsOf(admin: Client, type: string): Promise<number[]> {
  const { rows } = await admin.query("select count from event where type = $1 order by last_seq", [type]);
  return rows.map(({ count }) => Number(count));
}

async function requests(admin: Client): Promise<number> {
  return (await admin.query("select 1 from exchange_request")).rowCount ?? 0;
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`There is no entry ${index}.`);
  return item;
}

/** Returns a function that counts the notifications of events since. */
function countNotifications(storage: Storage): () => number {
  let notifications = 0;
  storage.subscribe(({ kind }) => {
    if (kind === "events") notifications += 1;
  });
  return () => notifications;
}

describe("exchanges of several nodes that come together", () => {
  test("are one step: each node gets its ends and its tasks", async () => {
    const { nodes, first, admin } = await openNodes(4);
    await submit(first, tasksOf(5, 60));
    const claims = [{ lane: LANE, limit: 5 }];
    const held: ClaimedTask[][] = [];
    for (const node of nodes) held.push([...(await exchange(node, { claims })).claimed]);
    const before = await rowsOf(admin, "task.started");
    const results = ended(
      await together(
        admin,
        nodes.map((node, n) => () => exchange(node, { finishes: settle(at(held, n)), claims })),
      ),
    );
    for (const [n, { finished, claimed }] of results.entries()) {
      expect(finished.map(({ token }) => token)).toEqual(at(held, n).map(({ token }) => token));
      expect(claimed).toHaveLength(5);
      const { held: leases } = await first.nodes.heartbeat({ node: `node-${n}` });
      expect(leases.map(({ token }) => token).sort()).toEqual(claimed.map(({ token }) => token).sort());
    }
    expect((await rowsOf(admin, "task.started")).slice(before.length)).toEqual([20]);
    expect(await rowsOf(admin, "task.completed")).toEqual([20]);
    expect(await requests(admin)).toBe(0);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("notify another node once of the events of all", async () => {
    const { nodes, first, admin } = await openNodes(4);
    const reader = at(nodes, 3).storage;
    const writers = nodes.slice(0, 3);
    await submit(first, tasksOf(5, 30));
    const arrived = async () => {
      for (const { storage } of writers) await signalsArrived(storage, reader);
    };
    await arrived();
    const notifications = countNotifications(reader);
    const claims = [{ lane: LANE, limit: 5 }];
    const results = ended(
      await together(
        admin,
        writers.map((node) => () => exchange(node, { claims })),
      ),
    );
    expect(results.map(({ claimed }) => claimed.length)).toEqual([5, 5, 5]);
    await arrived();
    expect(notifications()).toBe(1);
    // One that only waits still has the events of the others notified.
    const held = at(results, 1).claimed;
    const [idle, busy] = [at(nodes, 0), at(nodes, 1)];
    await together(admin, [() => exchange(idle, {}), () => exchange(busy, { finishes: settle(held) })]);
    await arrived();
    expect(notifications()).toBe(2);
    // A step in which nothing happens notifies no node.
    await together(admin, [() => exchange(idle, {}), () => exchange(busy, {})]);
    await arrived();
    expect(notifications()).toBe(2);
  });

  test("share the tasks when there are too few for all", async () => {
    const { nodes, first, admin } = await openNodes(3);
    await submit(first, tasksOf(2, 7));
    const claims = [{ lane: LANE, limit: 5 }];
    const results = ended(
      await together(
        admin,
        nodes.map((node) => () => exchange(node, { claims })),
      ),
    );
    expect(results.map(({ claimed }) => claimed.length).sort()).toEqual([2, 2, 3]);
  });

  test("each get what they asked for, in several lanes, running and ahead, with progress and starts", async () => {
    const { nodes, first, admin } = await openNodes(3);
    await submit(first, [...tasksOf(3, 40), ...tasksOf(3, 40, { lane: OTHER_LANE })]);
    const [a, b, c] = [at(nodes, 0), at(nodes, 1), at(nodes, 2)];
    const held = (await exchange(b, { claims: [{ lane: LANE, limit: 2, state: "assigned" }] })).claimed;
    const results = ended(
      await together(admin, [
        () => exchange(a, { claims: [{ lane: LANE, limit: 3 }] }),
        () =>
          exchange(b, {
            begun: held.map(({ task: { seq }, token }) => ({ seq, token })),
            progress: held.map(({ task: { seq }, token }) => ({ seq, token, progress: "half" })),
            claims: [
              { lane: OTHER_LANE, limit: 4 },
              { lane: LANE, limit: 1, ahead: 2 },
            ],
          }),
        () => exchange(c, { claims: [{ lane: LANE, limit: 2, state: "assigned" }] }),
      ]),
    );
    const seen = results.map(({ claimed }) =>
      claimed.map(({ task: { lane, state } }) => `${lane} ${state}`).sort(),
    );
    const of = (lane: string, state: string, count: number) => Array(count).fill(`${lane} ${state}`);
    expect(seen).toEqual([
      of(LANE, "running", 3),
      [...of(LANE, "assigned", 2), ...of(LANE, "running", 1), ...of(OTHER_LANE, "running", 4)].sort(),
      of(LANE, "assigned", 2),
    ]);
    const types = (await allEvents(first)).map(({ type }) => type);
    expect(types.filter((type) => type === "task.progress")).toHaveLength(2);
    expect(types.filter((type) => type === "task.started")).toHaveLength(10);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("end as some order of exchanges would, however they come together, and keep every limit", async () => {
    const { nodes, first } = await openNodes(4);
    const random = chance(7);
    await first.lanes.configure({
      lanes: [{ name: LANE, total: 11, perAgent: 3, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
    });
    await first.agents.configure({ tenant: TENANT, agent: "agent-1", maxInflight: 2 });
    const tasks = tasksOf(5, 400).map((task) => ({
      ...task,
      lane: random(4) === 0 ? OTHER_LANE : LANE,
      priority: random(20) === 0 ? 0 : 2,
      concurrencyKey: random(10) === 0 ? `key-${random(3)}` : null,
    }));
    await submit(first, tasks);
    await Promise.all(
      nodes.map(async (node) => {
        let held: readonly ClaimedTask[] = [];
        for (let idle = 0; idle < 30; ) {
          const claims = [
            { lane: LANE, limit: 1 + random(6) },
            { lane: OTHER_LANE, limit: 1 + random(3) },
          ];
          const keep = random(2) === 0 ? 0 : random(held.length + 1);
          const { finished, claimed } = await exchange(node, { finishes: settle(held.slice(keep)), claims });
          expect(finished).toHaveLength(held.length - keep);
          held = [...held.slice(0, keep), ...claimed];
          idle = held.length === 0 ? idle + 1 : 0;
        }
      }),
    );
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 400 });
    const events = await allEvents(first);
    expect(events.map(({ seq }) => seq)).toEqual(
      [...new Set(events.map(({ seq }) => seq))].sort((x, y) => x - y),
    );
    expect(events.filter(({ type }) => type === "task.started")).toHaveLength(400);
    expect(
      Math.max(
        ...peaks(
          events.filter(({ lane }) => lane === LANE),
          ({ lane }) => lane,
        ),
      ),
    ).toBeLessThanOrEqual(11);
    expect(
      Math.max(
        ...peaks(
          events.filter(({ agent }) => agent === "agent-1"),
          ({ agent }) => agent,
        ),
      ),
    ).toBeLessThanOrEqual(2);
    expect(await first.counters.recountAll()).toEqual([]);
  });
});

describe("an exchange whose connection breaks", () => {
  const claims = [{ lane: LANE, limit: 3 }];

  test("while it has the turn leaves the requests of the others standing, and is repeated", async () => {
    const { nodes, first, admin } = await openNodes(3);
    await submit(first, tasksOf(3, 30));
    const results = ended(
      await together(
        admin,
        nodes.map((node) => () => exchange(node, { claims })),
        async () => {
          await admin.query("select pg_terminate_backend($1)", [at(await waiting(admin, 7682), 0)]);
          await expect.poll(() => waiting(admin, 7682)).toHaveLength(1);
          await expect.poll(() => waiting(admin, 7684)).toHaveLength(2);
        },
      ),
    );
    // The first may have started tasks that its node does not know of, so it starts no others.
    expect(results.map(({ claimed }) => claimed.length)).toEqual([0, 3, 3]);
    expect(await requests(admin)).toBe(0);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("notifies the other nodes when it is repeated: it may have been committed before, with events of several nodes", async () => {
    const { nodes, first, admin } = await openNodes(2);
    await submit(first, tasksOf(3, 30));
    const [writer, reader] = [at(nodes, 0), at(nodes, 1)];
    await signalsArrived(writer.storage, reader.storage);
    const notifications = countNotifications(reader.storage);
    const [{ claimed } = { claimed: null }] = ended(
      await together(admin, [() => exchange(writer, { claims })], async () => {
        await admin.query("select pg_terminate_backend($1)", [at(await waiting(admin, 7682), 0)]);
        await expect.poll(() => waiting(admin, 7682)).toHaveLength(1);
      }),
    );
    expect(claimed).toEqual([]);
    await signalsArrived(writer.storage, reader.storage);
    expect(notifications()).toBe(1);
  });

  test("while it waits collects its result when it is repeated", async () => {
    const { nodes, first, admin } = await openNodes(2);
    await submit(first, tasksOf(3, 30));
    const other = at(nodes, 1);
    const held = (await exchange(other, { claims })).claimed;
    const results = ended(
      await together(
        admin,
        [() => exchange(at(nodes, 0), { claims }), () => exchange(other, { finishes: settle(held), claims })],
        async () => {
          await admin.query("select pg_terminate_backend($1)", [at(await waiting(admin, 7684), 0)]);
          await expect.poll(() => waiting(admin, 7684)).toHaveLength(1);
        },
      ),
    );
    expect(results.map(({ claimed }) => claimed.length)).toEqual([3, 3]);
    expect(at(results, 1).finished).toHaveLength(3);
    expect((await first.nodes.heartbeat({ node: other.node })).held).toHaveLength(3);
    expect(await requests(admin)).toBe(0);
  });
});

describe("a request", () => {
  const claims = [{ lane: LANE, limit: 2 }];

  test("of a node that is declared dead ends and starts nothing", async () => {
    const { nodes, first, admin } = await openNodes(2);
    await submit(first, tasksOf(2, 10));
    const other = at(nodes, 1);
    const held = (await exchange(other, { claims })).claimed;
    const [, late] = ended(
      await together(
        admin,
        [() => exchange(at(nodes, 0), { claims }), () => exchange(other, { finishes: settle(held), claims })],
        () => admin.query("update node set dead = true where id = $1", [other.node]),
      ),
    );
    expect(late).toMatchObject({ finished: [], claimed: [] });
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ running: 4, queued: 6 });
  });

  test("that cannot be stored fails alone", async () => {
    const { nodes, first, admin } = await openNodes(4);
    await submit(first, tasksOf(4, 40));
    const held: ClaimedTask[][] = [];
    for (const node of nodes) held.push([...(await exchange(node, { claims })).claimed]);
    const usage = { inputTokens: 1e30, outputTokens: 0 };
    const poisoned = settle(at(held, 2)).map((finish) => ({ ...finish, usage }));
    const results = await together(
      admin,
      nodes.map(
        (node, n) => () => exchange(node, { finishes: n === 2 ? poisoned : settle(at(held, n)), claims }),
      ),
    );
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 6, running: 8, queued: 26 });
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("of another version is left to that version", async () => {
    const { nodes, first, admin } = await openNodes(2);
    await submit(first, tasksOf(2, 10));
    const results = ended(
      await together(
        admin,
        nodes.map((node) => () => exchange(node, { claims })),
        () => admin.query("update exchange_request set functions = 'rota_fn_other'"),
      ),
    );
    expect(results.map(({ claimed }) => claimed.length)).toEqual([2, 2]);
    expect(await rowsOf(admin, "task.started")).toEqual([2, 2]);
  });

  test("with large results only waits: they are not written twice", async () => {
    const { nodes, first, admin } = await openNodes(2);
    await submit(first, tasksOf(2, 10));
    const other = at(nodes, 1);
    const held = (await exchange(other, { claims })).claimed;
    const large = "r".repeat(100_000);
    const finishes = settle(held).map((end) => ({
      ...end,
      settlement: { to: "done", result: large } as const,
    }));
    const results = ended(
      await together(
        admin,
        [() => exchange(at(nodes, 0), { claims }), () => exchange(other, { finishes, claims })],
        async () => expect(await requests(admin)).toBe(0),
      ),
    );
    expect(results.map(({ claimed }) => claimed.length)).toEqual([2, 2]);
    expect(at(results, 1).finished).toHaveLength(2);
  });

  test.each([
    { how: "cancelled", executions: 0, retried: false, restarted: false },
    { how: "cancelled and queued again", executions: 0, retried: true, restarted: false },
    { how: "cancelled and started again by another node", executions: 0, retried: true, restarted: true },
    { how: "cancelled in its second attempt", executions: 1, retried: false, restarted: false },
    {
      how: "cancelled in its second attempt and started by another",
      executions: 1,
      retried: true,
      restarted: true,
    },
  ])("returns no task that was $how before its node read it", async ({ executions, retried, restarted }) => {
    const { nodes, first, admin, url } = await openNodes(2);
    const [server, reader] = [at(nodes, 0), at(nodes, 1)];
    await submit(first, [{ id: "a" }]);
    const cancelA = () => first.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    for (let number = 0; number < executions; number += 1) {
      expect((await exchange(server, { claims: [{ lane: LANE, limit: 1 }] })).claimed).toHaveLength(1);
      await cancelA();
      await first.tasks.retry({ tenant: TENANT, id: "a" });
    }
    const queue = new Client({ connectionString: url });
    await queue.connect();
    onTestFinished(() => queue.end());
    // The reader waits for its result behind this lock, after its request was done.
    await admin.query("select pg_advisory_lock(7682)");
    const served = exchange(server, {});
    await expect.poll(() => waiting(admin, 7682)).toHaveLength(1);
    const locked = queue.query("select pg_advisory_lock(7684)");
    await expect.poll(() => waiting(admin, 7684)).toHaveLength(1);
    const read = exchange(reader, { claims: [{ lane: LANE, limit: 1 }] });
    await expect.poll(() => waiting(admin, 7684)).toHaveLength(2);
    await admin.query("select pg_advisory_unlock(7682)");
    await Promise.all([served, locked]);
    expect((await first.nodes.heartbeat({ node: "node-1" })).held).toHaveLength(1);
    await cancelA();
    if (retried) await first.tasks.retry({ tenant: TENANT, id: "a" });
    if (restarted)
      await admin.query(
        `insert into lease (task_seq, token, node, line, lane, state, attempt, started_at)
         select seq, 9999, 'node-0', line, '${LANE}', 'running', executions + 1, 0 from task`,
      );
    await queue.query("select pg_advisory_unlock(7684)");
    expect((await read).claimed).toEqual([]);
  });

  test("that its node gave up is deleted by a later heartbeat", async () => {
    const { first, admin } = await openNodes(1);
    const ask = (number: number, age: number) =>
      admin.query(
        `insert into exchange_request (node, number, asked_at, functions, seqs, tokens, results, lanes, limits, "each", "left")
         values ('node-0', $1, floor(extract(epoch from clock_timestamp()) * 1000) - $2::bigint, current_schema(), '{}', '{}', '{}',
                 '{}', '{}', '{}', '{}')`,
        [number, age],
      );
    await ask(1, 1_000);
    await ask(2, 200_000);
    await first.nodes.heartbeat({ node: "node-0" });
    const { rows } = await admin.query("select number from exchange_request");
    expect(rows).toEqual([{ number: "1" }]);
  });
});

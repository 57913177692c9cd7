import { describe, expect, test } from "vitest";
import {
  allEvents,
  drain,
  openNodes,
  prepareDatabases,
  submit,
  tasksOf,
} from "../../../../test/postgres/several-nodes.ts";
import { allRollups, countAll, totals } from "../../conformance/log/rollups.ts";
import { LANE, TENANT } from "../../conformance/world.ts";
import type { RollupRow, Storage } from "../../storage.ts";

prepareDatabases();

/** What the log says of all tasks, none of which may be gone. */
async function logged(storage: Storage) {
  const events = await allEvents(storage);
  const count = (type: string) => events.filter((event) => event.type === type).length;
  return {
    submitted: count("task.created"),
    started: count("task.started"),
    done: count("task.completed"),
    failed: count("task.failed"),
    cancelled: count("task.cancelled"),
  };
}

function busyness({ submitted, started, done }: RollupRow): number {
  return submitted + started + done;
}

describe("nodes that count at once", () => {
  test("count every event once, while others write", async () => {
    const { nodes, first } = await openNodes(4);
    let isWriting = true;
    const writing = (async () => {
      for (let n = 0; n < 5; n += 1) {
        await submit(first, tasksOf(7, 100));
        await Promise.all(nodes.map((node) => drain(node, [LANE], 5)));
      }
      isWriting = false;
    })();
    const counting = nodes.map(async ({ storage }, index) => {
      while (isWriting) await storage.rollups.advance({ limit: 10 + 13 * index });
    });
    await Promise.all([writing, ...counting]);
    await countAll(first, 50);
    const expected = await logged(first);
    expect(expected).toMatchObject({ submitted: 500, started: 500, done: 500 });
    for (const kind of ["lane", "agent"] as const) {
      for (const step of [60, 3_600, 86_400] as const) {
        expect(totals(await allRollups(first, { kind, step }))).toMatchObject(expected);
      }
    }
    const agents = await allRollups(first, { kind: "agent", step: 86_400 });
    expect(new Set(agents.map(({ key }) => key)).size).toBe(7);
    expect(agents.reduce((sum, row) => sum + busyness(row), 0)).toBe(1_500);
  });

  test("do not wait for the one that is at it", async () => {
    const { first, admin } = await openNodes(1);
    await submit(first, tasksOf(1, 3));
    await first.rollups.advance({ limit: 1 });
    await submit(first, tasksOf(1, 3));
    await admin.query("begin");
    await admin.query("select 1 from rota.high_water where name = 'rollup' for update");
    expect(await first.rollups.advance({ limit: 100 })).toEqual({ events: 0, more: true });
    await admin.query("rollback");
    expect(await countAll(first)).toBe(3);
  });
});

describe("a node that is killed in the middle of a slice", () => {
  test("has counted nothing of it, and the next who counts does it once", async () => {
    const { nodes, first, admin } = await openNodes(2);
    const other = nodes[1]?.storage ?? first;
    await submit(first, tasksOf(3, 20));
    await drain(nodes[0] as (typeof nodes)[number], [LANE], 5);
    await countAll(first);
    await submit(first, tasksOf(3, 20));
    // A row that the slice has to wait for.
    await admin.query("begin");
    await admin.query("update rota.rollup set tokens = tokens where kind = 'lane' and step = 86400");
    const killed = first.rollups.advance({ limit: 1_000 }).catch(() => null);
    const terminate = async () => {
      // Within a transaction PostgreSQL returns the same `pg_stat_activity` as at the first read.
      await admin.query("select pg_stat_clear_snapshot()");
      const { rowCount } = await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query like '%roll_up(%' and wait_event_type = 'Lock'
            and pid <> pg_backend_pid()`,
      );
      return rowCount ?? 0;
    };
    await expect.poll(terminate).toBe(1);
    await admin.query("rollback");
    await killed;
    await countAll(other);
    await countAll(first);
    expect(totals(await allRollups(first, { step: 86_400 }))).toMatchObject({
      submitted: 40,
      started: 20,
      done: 20,
    });
    expect(totals(await allRollups(first, { kind: "agent", tenant: TENANT }))).toMatchObject(
      await logged(first),
    );
  });
});

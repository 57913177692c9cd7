import { describe, expect, test } from "vitest";
import { DEFAULT_AGENT } from "../../../model/agent.ts";
import { RUN_STATUSES } from "../../../model/run.ts";
import type { ListRunsParams, RunRecord, ScheduleRecord } from "../../storage.ts";
import {
  create,
  FAILED,
  fire,
  readNotifications,
  running,
  runOnce,
  unfired,
} from "../schedules/schedule-world.ts";
import { type OpenWorld, TENANT, type World } from "../world.ts";

/** Lists of one agent, as a key of the role `agent` reads them. */
export function describeAgentFilters(open: OpenWorld): void {
  describe("a list of one agent", () => {
    test("has its sessions on full pages, whatever other agents have", async () => {
      const world = await open();
      const { sessions } = world.storage;
      const agents = ["b", "a", "b", "b", "a", "b", "a", null, "b"];
      for (const [index, agent] of agents.entries()) {
        const changes = agent === null ? { cap: 3 } : { agent };
        await sessions.update({ tenant: TENANT, key: `s${index}`, defaultMax: 1, changes });
      }
      await sessions.update({ tenant: "zeta", key: "theirs", defaultMax: 1, changes: { agent: "a" } });
      const keys = async (agent: string, limit: number) =>
        pagesOf(limit, async (cursor) => {
          const page = await sessions.list({ tenant: TENANT, agent, limit, ...cursor });
          return { items: page.sessions.map(({ key }) => key), nextCursor: page.nextCursor };
        });
      expect(await keys("a", 2)).toEqual([["s6", "s4"], ["s1"]]);
      expect(await keys("a", 3)).toEqual([["s6", "s4", "s1"]]);
      expect(await keys("b", 5)).toEqual([["s8", "s5", "s3", "s2", "s0"]]);
      expect(await keys(DEFAULT_AGENT, 5)).toEqual([["s7"]]);
      expect(await keys("unknown", 5)).toEqual([[]]);
      await sessions.update({ tenant: TENANT, key: "s4", defaultMax: 1, changes: { agent: "b" } });
      expect(await keys("a", 5)).toEqual([["s6", "s1"]]);
    });

    test("has its runs on full pages, in any status and of any schedule", async () => {
      const world = await open();
      const { schedules, all } = await withRuns(world);
      const filters: Partial<ListRunsParams>[] = [{}, { since: 0 }, { since: world.clock.now() - 15 }];
      const narrowed = filters.flatMap((filter) => [
        filter,
        ...RUN_STATUSES.map((status) => ({ ...filter, status })),
      ]);
      const narrower = narrowed.flatMap((filter) => [
        filter,
        ...schedules.map(({ id }) => ({ ...filter, schedule: id })),
      ]);
      for (const filter of narrower) {
        for (const agent of ["a", "b", "unknown"]) {
          const expected = all.filter((run) => matches(run, { ...filter, agent })).map(({ id }) => id);
          for (const limit of [1, 3, 100]) {
            const pages = await pagesOf(limit, async (cursor) => {
              const params = { tenant: TENANT, ...filter, agent, limit, ...cursor };
              const { runs, nextCursor } = await world.storage.schedules.listRuns(params);
              return { items: runs.map(({ id }) => id), nextCursor };
            });
            expect(pages, JSON.stringify({ ...filter, agent, limit })).toEqual(chunks(expected, limit));
          }
        }
      }
      expect(await world.storage.schedules.listRuns({ tenant: "zeta", agent: "a", limit: 9 })).toEqual({
        runs: [],
        nextCursor: null,
      });
    });

    test("has its notifications, and goes on behind those of other agents", async () => {
      const world = await open();
      await withRuns(world);
      const all = await readNotifications(world);
      const newest = all.at(-1)?.seq ?? 0;
      for (const agent of ["a", "b", "unknown"]) {
        const expected = all.filter((each) => each.agent === agent).map(({ seq }) => seq);
        const found: number[] = [];
        let [after, more] = [0, true];
        for (; more; ) {
          const page = await world.storage.notifications.read({ after, limit: 3, tenant: TENANT, agent });
          if (page.more) expect(page.notifications).toHaveLength(3);
          found.push(...page.notifications.map(({ seq }) => seq));
          ({ upTo: after, more } = page);
        }
        expect([found, after]).toEqual([expected, newest]);
      }
      const other = await world.storage.notifications.read({
        after: 0,
        limit: 3,
        tenant: "zeta",
        agent: "a",
      });
      expect([other.notifications, other.upTo]).toEqual([[], newest]);
    });

    test("has no log lines of a task of another agent", async () => {
      const world = await open();
      const { logs } = world.storage;
      await world.submit({ id: "task", agent: "a" });
      const lines = [{ at: 1, level: "info", text: "hello" }] as const;
      const { seq: taskSeq } = await world.task("task");
      await logs.append({ pieces: [{ taskSeq, attempt: 1, lastN: 1, bytes: 10, lines }] });
      const read = { tenant: TENANT, taskId: "task", after: 0, limit: 10 };
      expect(await logs.read({ ...read, agent: "a" })).toMatchObject({ lines: [{ text: "hello" }] });
      expect(await logs.read({ ...read, agent: "b" })).toBeNull();
      expect(await logs.read({ ...read, tenant: "zeta", agent: "a" })).toBeNull();
    });
  });
}

/** Runs of two agents in every status, also of one schedule that changed its agent. */
async function withRuns(world: World): Promise<{ schedules: ScheduleRecord[]; all: RunRecord[] }> {
  const mixed = await create(world, { definition: { agent: "a" } });
  const other = await create(world, { definition: { agent: "b" } });
  for (const [round, agent] of ["a", "b", "a", "b", "b"].entries()) {
    const { revision } = (await world.storage.schedules.get(mixed)) as ScheduleRecord;
    await world.storage.schedules.update({ ...mixed, revision, changes: { agent } });
    const at = 10 * round;
    for (const schedule of [{ ...mixed, agent }, other]) {
      const runs = [
        unfired("skipped", at + 1),
        running(world, schedule, { dueAt: at + 2, firstDueAt: at + 2 }),
        unfired("missed", at + 3),
      ];
      await fire(world, schedule, { runs });
    }
    await runOnce(world, round % 2 === 0 ? { to: "done", result: null } : FAILED);
    world.clock.step(10);
  }
  const { runs } = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 1_000 });
  for (const agent of ["a", "b"]) expect(runs.some((run) => run.agent === agent)).toBe(true);
  expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(RUN_STATUSES));
  return { schedules: [mixed, other], all: runs };
}

function matches(run: RunRecord, { agent, schedule, status, since }: Partial<ListRunsParams>): boolean {
  return (
    run.agent === agent &&
    (schedule === undefined || run.scheduleId === schedule) &&
    (status === undefined || run.status === status) &&
    (since === undefined || Math.max(run.startedAt ?? 0, run.completedAt ?? 0) >= since)
  );
}

async function pagesOf<Item>(
  limit: number,
  read: (cursor: { cursor?: number }) => Promise<{ items: Item[]; nextCursor: number | null }>,
): Promise<Item[][]> {
  const pages: Item[][] = [];
  for (let cursor: { cursor?: number } = {}; ; ) {
    const { items, nextCursor } = await read(cursor);
    pages.push(items);
    if (nextCursor === null) return pages;
    expect(items).toHaveLength(limit);
    cursor = { cursor: nextCursor };
  }
}

function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.max(Math.ceil(items.length / size), 1);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TASK_STATES } from "../../../model/task-state.ts";
import { openOracle } from "../../oracle/connection/open.ts";
import type { ListTasksParams } from "../../storage.ts";
import { anyCommand, type Command, LANES, submit, TENANTS } from "../commands.ts";
import { SteppedClock } from "../connection/clock.ts";
import { withinTimeLimit } from "../property.ts";
import { runCommand } from "../run-command.ts";
import { batchId, Side } from "../side.ts";
import type { StorageHarness } from "../world.ts";

const START = new SteppedClock().now();

/** Any combination of filters. The schedule is named by its index among those that were created. */
type Asked = Omit<ListTasksParams, "limit" | "cursor" | "lookedMax"> & { readonly scheduleAt?: number };

const asked: fc.Arbitrary<Asked> = fc
  .record(
    {
      agent: fc.constantFrom("a", "b", "unknown"),
      states: fc.uniqueArray(fc.constantFrom(...TASK_STATES), { maxLength: 4 }),
      priority: fc.constantFrom(2, 1, 0, -1),
      priorityMax: fc.constantFrom(0, -1, 2),
      batch: fc.integer({ min: 1, max: 4 }).map(batchId),
      lane: fc.constantFrom(...LANES),
      session: fc.constantFrom("s1", "s2", "nowhere"),
      scheduleAt: fc.integer({ min: 0, max: 3 }),
      search: fc.constantFrom("task-1", "task-", "batch-1", "k", "nothing"),
      from: fc.integer({ min: -100, max: 200 }).map((ms) => START + ms),
      to: fc.integer({ min: -100, max: 200 }).map((ms) => START + ms),
      order: fc.constantFrom("newest", "oldest", "completed"),
    },
    { requiredKeys: [] },
  )
  .chain((filters) =>
    // Few filters at a time, so that some tasks match.
    fc
      .tuple(fc.constantFrom(...TENANTS), fc.subarray(Object.keys(filters), { maxLength: 3 }))
      .map(([tenant, keys]) => ({
        tenant,
        ...Object.fromEntries(Object.entries(filters).filter(([key]) => keys.includes(key))),
      })),
  );

/** The clock may be set back between them. */
const commands = fc.array(
  fc.tuple(fc.oneof(submit, submit, anyCommand), fc.constantFrom(0, 0, 1, 5, 30, -20)),
  { minLength: 3, maxLength: 40, size: "max" },
);

const list = fc.record({
  asked,
  limit: fc.integer({ min: 1, max: 6 }),
  lookedMax: fc.integer({ min: 1, max: 8 }),
});

export function describeListProperties(harness: StorageHarness): void {
  describe("any list", { timeout: 120_000 }, () => {
    test("has, page by page, each task that fits once and in order, however few are looked at", async () => {
      const compare = withinTimeLimit((steps: [Command, number][], lists: List[]) =>
        compareLists(harness, steps, lists),
      );
      await fc.assert(fc.asyncProperty(commands, fc.array(list, { minLength: 10, maxLength: 20 }), compare), {
        numRuns: harness.propertyRuns,
      });
    });
  });
}

type List = { asked: Asked; limit: number; lookedMax: number };

async function compareLists(
  harness: StorageHarness,
  steps: readonly [Command, number][],
  lists: readonly List[],
): Promise<void> {
  const clock = new SteppedClock();
  const { storage, dispose } = await harness.open(clock);
  try {
    const model = await Side.start(openOracle({ clock }), clock, harness);
    const real = await Side.start(storage, clock, harness);
    for (const [command, ms] of steps) {
      clock.step(command.do === "wait" ? command.ms : ms);
      await runCommand(model, command);
      await runCommand(real, command);
    }
    for (const { asked: filters, ...page } of lists) {
      const expected = await listAll(model, filters, { limit: 10_000 });
      const found = await listAll(real, filters, page);
      const what = `${JSON.stringify(filters)} by ${JSON.stringify(page)}`;
      // Tasks that ended together have no defined order.
      const isSet = filters.order === "completed";
      expect(isSet ? found.ids.toSorted() : found.ids, what).toEqual(
        isSet ? expected.ids.toSorted() : expected.ids,
      );
      expect(found.ends, what).toEqual(expected.ends);
      expect(found.rows, what).toEqual(found.ids);
    }
  } finally {
    await dispose();
  }
}

/** All pages of a list put together, of tasks and of rows, and when they ended if that is the order. */
async function listAll(
  side: Side,
  { scheduleAt, ...filters }: Asked,
  page: { readonly limit: number; readonly lookedMax?: number },
): Promise<{ ids: string[]; ends: (number | null)[]; rows: string[] }> {
  const schedule = scheduleAt === undefined ? {} : { schedule: side.chooseSchedule(scheduleAt).id };
  const params = { ...filters, ...schedule, ...page };
  const tasks = await eachPage(params, async (at) => {
    const { tasks: items, nextCursor } = await side.storage.tasks.list(at);
    return { items, nextCursor };
  });
  const rows = await eachPage(params, async (at) => {
    const { rows: items, nextCursor } = await side.storage.tasks.listRows(at);
    return { items, nextCursor };
  });
  const ends = filters.order === "completed" ? tasks.map(({ completedAt }) => completedAt) : [];
  return { ids: tasks.map(({ id }) => id), ends, rows: rows.map(({ id }) => id) };
}

async function eachPage<Item>(
  params: ListTasksParams,
  read: (params: ListTasksParams) => Promise<{ items: Item[]; nextCursor: number | null }>,
): Promise<Item[]> {
  const all: Item[] = [];
  let cursor: number | null = null;
  do {
    const { items, nextCursor }: { items: Item[]; nextCursor: number | null } = await read({
      ...params,
      ...(cursor === null ? {} : { cursor }),
    });
    expect(items.length).toBeLessThanOrEqual(params.limit);
    expect(nextCursor, "a page that goes nowhere").not.toBe(cursor ?? "none yet");
    all.push(...items);
    cursor = nextCursor;
  } while (cursor !== null);
  return all;
}

import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SteppedClock } from "../../conformance/connection/clock.ts";
import { newDefinition } from "../../conformance/schedules/schedule-world.ts";
import { UNBOUNDED } from "../../conformance/tenants/share-out.ts";
import { LANE, NODE, newTask, ROOMY, ROOMY_SHARES, TENANT } from "../../conformance/world.ts";
import type { ListTasksParams, ScheduleRecord, Storage } from "../../storage.ts";
import { openSqlite } from "./open.ts";

/** Tables of a few rows, whatever the backlog: reading one whole is the cheapest way. */
const SMALL_TABLES = ["lane", "CONSTANT ROW"];

const prepare = Sqlite.prototype.prepare;
const statements = new Map<string, Sqlite.Database>();
let storage: Storage;

beforeEach(async () => {
  statements.clear();
  vi.spyOn(Sqlite.prototype, "prepare").mockImplementation(function (this: Sqlite.Database, sql: string) {
    statements.set(sql, this);
    return prepare.call(this, sql);
  });
  storage = await openSqlite({ path: ":memory:", clock: new SteppedClock() });
  await storage.nodes.register({ node: NODE });
  await storage.lanes.configure({
    lanes: [{ name: LANE, total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
  });
  // Agents and lines are made once; what follows is what every task goes through.
  await submit();
  statements.clear();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await storage.close();
});

test("a task goes its way without a table being scanned, sorted or built", async () => {
  await submit();
  for (let step = 0; step < 3; step += 1) await exchange();
  await storage.tasks.promoteDue({ limit: 10 });
  await storage.tasks.expire({ limit: 10 });
  await storage.tasks.nextDueAt();
  expect(statements.size).toBeGreaterThan(10);
  expect([...statements].flatMap(([sql, db]) => expensiveSteps(db, sql))).toEqual([]);
});

test("events are counted, and rollups read, without a table being scanned", async () => {
  for (let step = 0; step < 3; step += 1) await exchange();
  const id = "ends-waiting";
  await storage.tasks.insert({ tasks: [newTask({ id })], limits: ROOMY });
  await storage.tasks.cancel({ tenant: TENANT, ids: [id], error: null });
  statements.clear();
  await storage.rollups.advance({ limit: 100 });
  await storage.rollups.advance({ limit: 100 });
  const range = { tenant: TENANT, kind: "agent", step: 60, from: 0, to: 9e15, limit: 10 } as const;
  await storage.rollups.read(range);
  await storage.rollups.read({ ...range, after: { at: 1, key: "a" } });
  await storage.rollups.lateMs();
  expect(statements.size).toBeGreaterThan(10);
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // The tasks of one row of the log, which are few, are put together in memory.
  expect(steps.filter((step) => !step.includes("json_each"))).toEqual([]);
});

test("a task of a session or a bounded batch goes its way without a table being scanned", async () => {
  const session = { key: "user:42", maxConcurrent: 2 };
  const batch = { id: "together", tenant: TENANT, parallelism: 1, callbackUrl: null };
  const tasks = Array.from({ length: 4 }, () => newTask({ session, batch: batch.id }));
  await storage.tasks.insert({ tasks, batches: [batch], limits: ROOMY });
  const spec = { ...newTask().spec, work: { kind: "message", message: "hello" } } as const;
  for (const debounceMs of [0, 100, 100]) {
    await storage.sessions.send({
      task: newTask({ session, origin: "message", spec }),
      mode: null,
      maxConcurrent: null,
      defaults: { mode: "queue", cap: 2, drop: "old", debounceMs },
    });
  }
  for (let step = 0; step < 3; step += 1) await exchange();
  await storage.sessions.get({ tenant: TENANT, key: session.key });
  await storage.sessions.stop({ tenant: TENANT, key: session.key, scope: "all", limit: 10 });
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // SQLite sorts the tasks that a session admits and drops: they are few, as many as may run or wait, and a batch is small. Returned rows are kept.
  expect(steps.filter((step) => !/^(USE TEMP B-TREE FOR (ORDER|GROUP) BY|OpenEphemeral)/.test(step))).toEqual(
    [],
  );
});

test("what waits is counted without reading a task", async () => {
  await storage.tasks.insert({ tasks: [newTask(), newTask({ runAt: 1e15 })], limits: ROOMY });
  statements.clear();
  expect((await storage.tasks.waiting({ tenant: TENANT })).delayed).toBe(1);
  expect(statements.size).toBeGreaterThan(1);
  expect([...statements.keys()].filter((sql) => /\b(from|join) task\b/.test(sql))).toEqual([]);
  const scans = [...statements].flatMap(([sql, db]) => plan(db, sql));
  expect(scans.filter((step) => /^SCAN (line|s|l)$/.test(step))).toEqual([]);
});

test("what was logged is read without a table being scanned", async () => {
  await storage.tasks.insert({ tasks: [newTask({ id: "logs" })], limits: ROOMY });
  statements.clear();
  const piece = { attempt: 1, lastN: 1, bytes: 1, lines: [{ at: 1, level: "info", text: "x" }] } as const;
  await storage.logs.append({ pieces: [{ taskSeq: 1, ...piece }] });
  await storage.logs.read({ tenant: TENANT, taskId: "logs", after: 0, limit: 10 });
  expect(statements.size).toBeGreaterThan(3);
  const scans = [...statements]
    .flatMap(([sql, db]) => plan(db, sql))
    .filter((step) => /^SCAN (task|t|task_log|l)$/.test(step));
  expect(scans).toEqual([]);
});

test("the turns of a session are found through their index, and read by their numbers", async () => {
  const session = { key: "user:42", maxConcurrent: 1 };
  await storage.tasks.insert({ tasks: [newTask({ agent: "talker", session })], limits: ROOMY });
  const claims = [{ lane: LANE, limit: 9 }];
  const { claimed } = await storage.tasks.finishAndClaim({ node: NODE, finishes: [], progress: [], claims });
  statements.clear();
  for (const { token, task } of claimed) await storage.sessions.readTurns({ seq: task.seq, token, limit: 9 });
  expect(statements.size).toBe(2);
  const looks = [...statements]
    .flatMap(([sql, db]) => plan(db, sql))
    .filter((step) => /\b(task|t|l|s)\b/.test(step));
  expect(looks.filter((step) => step.startsWith("SCAN t") || step.startsWith("SCAN l"))).toEqual([]);
  expect(looks.some((step) => step.startsWith("SEARCH task USING INDEX task_by_session (session=?)"))).toBe(
    true,
  );
});

test("a task with a concurrency key goes its way without a table being scanned, sorted or built", async () => {
  await storage.agents.configure({ tenant: TENANT, agent: "full", maxInflight: 1 });
  statements.clear();
  const keyed = { concurrencyKey: "tab:1" };
  await storage.tasks.insert({
    tasks: [
      newTask({ agent: "full", priority: 1 }),
      newTask({ agent: "full", ...keyed }),
      newTask(keyed),
      newTask({ priority: 1, ...keyed }),
    ],
    limits: ROOMY,
  });
  for (let step = 0; step < 6; step += 1) await exchange();
  await storage.tasks.expire({ limit: 10 });
  for (const table of ["key_hold", "parked = 'key'", "key_contested"]) {
    expect([...statements.keys()].some((sql) => sql.includes(table))).toBe(true);
  }
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // Nodes are few; lines that were not read lately are read in one go.
  expect(steps.filter((step) => !/node_slot|json_each/.test(step))).toEqual([]);
});

test("a task of one of many tenants goes its way without a table being scanned, sorted or built", async () => {
  const crowd = Array.from({ length: 100 }, (_, n) => newTask({ tenant: `tenant-${n}` }));
  await storage.tasks.insert({ tasks: crowd, limits: ROOMY });
  statements.clear();
  await submit();
  for (let step = 0; step < 3; step += 1) await exchange();
  expect([...statements.keys()].some((sql) => /from tenant_line .*order by/s.test(sql))).toBe(true);
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // Lines that were not read lately are read in one go.
  expect(steps.filter((step) => !/json_each/.test(step))).toEqual([]);
});

test("a task beside many tenants at their share goes its way without a table being scanned, sorted or built", async () => {
  await storage.tenants.create({ id: "second", name: "second", limits: UNBOUNDED });
  const lane = { name: LANE, total: 1_000, perAgent: null, strategy: "fair-fifo", agingMs: 0 } as const;
  await storage.lanes.configure({ lanes: [{ ...lane, perTenant: 1 }] });
  const crowd = Array.from({ length: 200 }, (_, n) => newTask({ tenant: `tenant-${n % 100}` }));
  await storage.tasks.insert({ tasks: crowd, limits: ROOMY });
  const claim = async (limit: number) => {
    const perTenant = { max: 1, left: new Map([["tenant-0", 0]]) };
    const claims = [{ lane: LANE, limit, perTenant }];
    const { claimed } = await storage.tasks.finishAndClaim({
      node: NODE,
      finishes: [],
      progress: [],
      claims,
    });
    return claimed.length;
  };
  // Those of others, and the one that was there before.
  expect(await claim(150)).toBe(100);
  statements.clear();
  await submit();
  expect([await claim(5), await claim(5)]).toEqual([0, 0]);
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // Lines that were not read lately are read in one go.
  expect(steps.filter((step) => !/json_each/.test(step))).toEqual([]);
});
/** What leads to the tasks of each list. */
const LEADS: readonly (readonly [filter: Partial<ListTasksParams>, index: RegExp])[] = [
  [{}, /^SEARCH x USING PRIMARY KEY \(tenant=\? AND task_seq>\? AND task_seq<\?\)/],
  [{ tenant: "unknown" }, /^SEARCH x USING PRIMARY KEY \(tenant=\?/],
  [{ states: ["done"] }, /^SEARCH x USING PRIMARY KEY \(tenant=\?/],
  [{ priority: 2, from: 1, to: 2 }, /^SEARCH x USING PRIMARY KEY \(tenant=\?/],
  [{ search: "task-" }, /^SEARCH t USING INDEX task_by_key \(tenant=\? AND <expr>=\?/],
  [{ states: ["queued"] }, /^SEARCH t USING (COVERING )?INDEX task_queued \(tenant=\?/],
  [
    { states: ["failed"] },
    /^SEARCH t USING (COVERING )?INDEX task_by_state \(tenant=\? AND resting_state=\?/,
  ],
  [{ states: ["running"] }, /^SEARCH t USING INTEGER PRIMARY KEY \(rowid=\?\)/],
  [{ agent: "agent-0", states: ["done"] }, /^SEARCH x USING PRIMARY KEY \(line=\? AND task_seq>\?/],
  [{ lane: LANE }, /^SEARCH x USING PRIMARY KEY \(line=\? AND task_seq>\?/],
  [{ priority: 0 }, /^SEARCH t USING (COVERING )?INDEX task_by_priority \(tenant=\? AND priority=\?/],
  [{ priorityMax: 0 }, /^SEARCH t USING (COVERING )?INDEX task_critical \(tenant=\?/],
  [{ batch: "together" }, /^SEARCH t USING (COVERING )?INDEX task_by_batch \(batch=\?/],
  [{ session: "user:42" }, /^SEARCH t USING (COVERING )?INDEX task_by_session \(session=\?/],
  [{ schedule: 1 }, /^SEARCH t USING (COVERING )?INDEX task_by_schedule \(schedule=\?/],
  [{ order: "completed" }, /^SEARCH e USING COVERING INDEX event_of_end \(tenant=\? AND type=\?/],
];

test.each(LEADS)(
  "a list of tasks of %j is led by its index, in order, and counts off what it looks at",
  async (filter, index) => {
    await storage.tasks.insert({
      tasks: [newTask({ session: { key: "user:42", maxConcurrent: 1 } })],
      limits: ROOMY,
    });
    for (const order of filter.order === undefined ? (["newest", "oldest"] as const) : [filter.order]) {
      statements.clear();
      await storage.tasks.list({ tenant: TENANT, limit: 10, ...filter, order });
      const steps = [...statements].flatMap(([sql, db]) => plan(db, sql));
      expect(steps.filter((step) => index.test(step))).not.toEqual([]);
      expect(steps.filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
      // What is scanned is what a request or a row of the log names, and the spans: one for a thousand tasks.
      const harmless = /^SCAN (j|k|json_each|h|CONSTANT ROW|task_span|\(subquery-\d+\))( |$)/;
      expect(steps.filter((step) => step.startsWith("SCAN") && !harmless.test(step))).toEqual([]);
    }
  },
);

test("a list of tasks sorts nothing, whatever it asks for", async () => {
  const filters = [
    {},
    { agent: "scout" },
    { states: ["queued"] },
    { states: ["failed"] },
    { states: ["done"], agent: "agent-0" },
    { states: ["queued"], agent: "agent-0" },
    { states: ["done"], batch: "together" },
    { session: "user:42" },
    { states: ["queued"], session: "user:42" },
  ] as const;
  for (const filter of filters) await storage.tasks.list({ tenant: TENANT, limit: 10, ...filter });
  const lists = [...statements].filter(([sql]) => /order by (t.seq|x.task_seq) desc/.test(sql));
  expect(lists.length).toBeGreaterThanOrEqual(6);
  expect(lists.flatMap(([sql, db]) => plan(db, sql)).filter((step) => step.includes("TEMP B-TREE"))).toEqual(
    [],
  );
});

test("a callback goes its way without a table being scanned, sorted or built", async () => {
  const { deliveries } = storage;
  for (const tenant of ["one", "two"]) {
    const tasks = ["x", "x", "y"].map((host) => newTask({ tenant, callbackUrl: `https://${host}.test/` }));
    await storage.tasks.insert({ tasks, limits: ROOMY });
    await storage.tasks.cancel({ tenant, ids: tasks.map(({ id }) => id), error: null });
  }
  const shares = { ...ROOMY_SHARES, perUnprovenHost: 1 };
  const { claimed } = await deliveries.claim({ shares, held: [], holdMs: 10 });
  const [first, second, third] = claimed.map(({ delivery: { seq, tries, dueAt } }) => ({
    seq,
    tries,
    dueAt,
  }));
  if (!first || !second || !third) throw new Error("Too few were claimed.");
  const outcome = { dueAt: null, responseStatus: 200, error: null };
  await deliveries.settle({
    tries: [
      { ...first, ...outcome, status: "delivered" },
      { ...second, ...outcome, status: "failed" },
    ],
  });
  await deliveries.putBack({ claims: [{ ...third, heldUntil: third.dueAt ?? 0, dueAt: 1 }] });
  await deliveries.resend({ tenant: "one", seq: second.seq });
  await storage.tasks.prune({ retentionMs: 0, rejectedMax: 1, limit: 100 });
  const ofDeliveries = [...statements].filter(([sql]) => /delivery|receiver/.test(sql));
  expect(ofDeliveries.length).toBeGreaterThan(15);
  const steps = ofDeliveries.flatMap(([sql, db]) => expensiveSteps(db, sql));
  // Returned rows are kept.
  expect(steps.filter((step) => !step.startsWith("OpenEphemeral"))).toEqual([]);
});

test("callbacks and events are found without a table being scanned or sorted", async () => {
  await storage.deliveries.list({ tenant: TENANT, limit: 10, status: "failed" });
  for (const filter of [{}, { status: "failed" as const }, { taskId: "task-1" }])
    await storage.deliveries.list({ tenant: TENANT, limit: 10, ...filter });
  await storage.events.read({ after: 0, limit: 10, bytesMax: 1_000 });
  await storage.events.read({ after: 0, limit: 10, bytesMax: 1_000, filter: { tenant: TENANT, agent: "a" } });
  await storage.notifications.read({ after: 0, limit: 10, tenant: TENANT });
  await storage.notifications.read({ after: 0, limit: 10, tenant: TENANT, agent: "a" });
  await storage.sessions.list({ tenant: TENANT, limit: 10 });
  await storage.sessions.list({ tenant: TENANT, agent: "a", limit: 10 });
  await storage.audit.list({ tenant: TENANT, limit: 10 });
  await storage.audit.list({ tenant: TENANT, limit: 10, keyId: "key" });
  expect(statements.size).toBeGreaterThanOrEqual(12);
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // The row of the log itself names its tasks.
  expect(steps.filter((step) => !step.startsWith("SCAN j "))).toEqual([]);
});

test("a schedule is found, fired and ended without a table being scanned", async () => {
  const { id, revision } = await storage.schedules.create({
    tenant: TENANT,
    definition: newDefinition(),
    status: "active",
    nextFireAt: 1,
    source: "s",
  });
  statements.clear();
  await storage.schedules.nextDueAt();
  await storage.schedules.due({ limit: 10 });
  const at = { dueAt: 1, firstDueAt: 1, moments: 1, forced: false };
  const task = newTask({ origin: "run", schedule: id, session: { key: "s", maxConcurrent: 1 } });
  const runs = [
    { ...at, status: "missed", reason: "down" } as const,
    { ...at, dueAt: 2, status: "running", requestId: "r", task, replaces: true } as const,
  ];
  const fire = { tenant: TENANT, id, revision, runs, nextFireAt: 3, pauses: null };
  await storage.schedules.fire({ fires: [fire] });
  for (let step = 0; step < 3; step += 1) await exchange();
  await storage.schedules.prune({ retentionMs: 10, limit: 10 });
  await storage.notifications.read({ after: 0, limit: 10 });
  expect(statements.size).toBeGreaterThan(10);
  const steps = [...statements].flatMap(([sql, db]) => expensiveSteps(db, sql));
  // Returned rows are kept; how sessions are settled is looked at above. Notifications go from the oldest, a slice at a time.
  const harmless = /^OpenEphemeral|FOR (ORDER|GROUP) BY|^SCAN notification: .* order by seq limit/;
  expect(steps.filter((step) => !harmless.test(step))).toEqual([]);
});

test("what is due of many tenants, who may have another, and what waits is found through indexes", async () => {
  const schedules = await Promise.all(
    ["a", "b", "c"].map((tenant) =>
      storage.schedules.create({
        tenant,
        definition: newDefinition(),
        status: "active",
        nextFireAt: 1,
        source: null,
        maxSchedules: 5,
      }),
    ),
  );
  expect(await storage.schedules.due({ limit: 2, after: "b" })).toHaveLength(2);
  const { tenant, id } = schedules[0] as ScheduleRecord;
  for (const revision of [1, 2]) {
    const task = newTask({ tenant, origin: "run", schedule: id });
    const at = { dueAt: revision, firstDueAt: revision, moments: 1, forced: false };
    const run = { ...at, status: "running", requestId: "r", task, replaces: false } as const;
    const fire = { tenant, id, revision, runs: [run], nextFireAt: 9, pauses: null, waitingMax: 1 };
    await storage.schedules.fire({ fires: [fire] });
  }
  await storage.schedules.delete({ tenant, id, limit: 1 });
  const own = [...statements].filter(([sql]) =>
    /with recursive owner|indexed by schedule_by_status|indexed by run_|where tenant = \? and next_fire_at|where next_fire_at <= \? limit/.test(
      sql,
    ),
  );
  expect(own).toHaveLength(6);
  const steps = own.flatMap(([sql, db]) => expensiveSteps(db, sql));
  // What the tenants were found to be, and the ids of a slice, which are as many as were asked for.
  expect(steps.filter((step) => !/^(SCAN owner|SCAN \(subquery|OpenEphemeral)/.test(step))).toEqual([]);
  const plans = own.flatMap(([sql, db]) => plan(db, sql)).filter((step) => /SEARCH/.test(step));
  for (const step of plans) expect(step).toMatch(/USING (COVERING )?INDEX|USING INTEGER PRIMARY KEY/);
});

test("lists of schedules and runs sort nothing, but for those of a span of time", async () => {
  const { schedules } = storage;
  for (const filter of [{}, { status: "active" as const }, { agent: "scout" }])
    await schedules.list({ tenant: TENANT, limit: 10, ...filter });
  for (const filter of [{}, { schedule: 1 }, { status: "failed" as const }])
    await schedules.listRuns({ tenant: TENANT, limit: 10, ...filter });
  await schedules.page({ tenant: TENANT, after: 0, limit: 10 });
  const lists = [...statements].filter(([sql]) => /order by/.test(sql));
  expect(lists).toHaveLength(7);
  expect(lists.flatMap(([sql, db]) => expensiveSteps(db, sql))).toEqual([]);
});

test("an agent's runs are found through its own entries of an index, a page of each status", async () => {
  const filters = [
    {},
    { schedule: 1 },
    { status: "failed" as const },
    { schedule: 1, status: "failed" as const },
  ];
  for (const filter of filters)
    await storage.schedules.listRuns({ tenant: TENANT, agent: "a", limit: 10, ...filter });
  const lists = [...statements].filter(([sql]) => /from run r/.test(sql));
  expect(lists).toHaveLength(4);
  const steps = lists.flatMap(([sql, db]) => plan(db, sql));
  expect(steps.filter((step) => /TEMP B-TREE|SCAN (r|run)\b/.test(step))).toEqual([]);
  const entries = steps.filter((step) => step.startsWith("SEARCH run "));
  expect(entries).toHaveLength(12);
  for (const step of entries)
    expect(step).toMatch(
      /INDEX run_by_(agent \(tenant|schedule_agent \(schedule)=\? AND agent=\? AND status=\? AND id</,
    );
});

async function submit(): Promise<void> {
  const tasks = Array.from({ length: 6 }, (_, index) => newTask({ agent: `agent-${index % 3}` }));
  await storage.tasks.insert({ tasks, limits: ROOMY });
}

async function exchange(): Promise<void> {
  const claims = [{ lane: LANE, limit: 3 }];
  const { claimed } = await storage.tasks.finishAndClaim({ node: NODE, finishes: [], progress: [], claims });
  const settlement = { to: "done", result: null } as const;
  const finishes = claimed.map(({ token, task: { seq } }) => ({ seq, token, settlement }));
  await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
}

function expensiveSteps(db: Sqlite.Database, sql: string): string[] {
  const scans = plan(db, sql).filter(
    (step) => /^SCAN|TEMP B-TREE/.test(step) && !SMALL_TABLES.some((table) => step === `SCAN ${table}`),
  );
  const built = explain<{ opcode: string }>(db, "explain", sql).filter(({ opcode }) =>
    /Ephemeral/.test(opcode),
  );
  const anew = /limit [?@]/.test(sql) ? ["is prepared anew with every call"] : [];
  return [...scans, ...built.map(({ opcode }) => opcode), ...anew].map((step) => `${step}: ${sql}`);
}

function plan(db: Sqlite.Database, sql: string): string[] {
  return explain<{ detail: string }>(db, "explain query plan", sql).map(({ detail }) => detail);
}

function explain<Row>(db: Sqlite.Database, how: string, sql: string): Row[] {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]);
  const values = names.length > 0 ? [Object.fromEntries(names)] : [...sql.matchAll(/\?/g)].map(() => 1);
  const statement = prepare.call(db, `${how} ${sql}`) as Sqlite.Statement<unknown[], Row>;
  return statement.all(...values);
}

import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  openNodes,
  prepareDatabases,
  settle,
  submit,
  tasksOf,
} from "../../../test/postgres/several-nodes.ts";
import { newDefinition } from "../conformance/schedules/schedule-world.ts";
import { UNBOUNDED } from "../conformance/tenants/share-out.ts";
import { newWorker } from "../conformance/workers/workers.ts";
import { LANE, newTask, ROOMY, TENANT } from "../conformance/world.ts";
import {
  type ClaimedTask,
  KEYS_LOOKED_AT,
  type NewTask,
  type ScheduleRecord,
  type Storage,
} from "../storage.ts";
import { FUNCTION_SCHEMA } from "./connection/functions.ts";
import { EVENTS_AFTER } from "./log/read-events.ts";
import { NEXT_SCHEDULE, NEXT_SCHEDULE_OF_TENANT } from "./schedules/due-schedules.ts";
import { listOfRuns } from "./schedules/runs.ts";
import { listOfSchedules, PAGE_OF_SCHEDULES } from "./schedules/schedules.ts";
import { TURNS_BEFORE } from "./sessions/read-turns.ts";
import { WAITING } from "./tasks/read-waiting.ts";
import { integers, sortByForm, specsOf, toTaskRow } from "./tasks/task-forms.ts";

prepareDatabases({ autovacuum: false });

const CLAIM_MAX = 10;

/** Plans are made while tables are small: of tables that the planner has never counted, or has counted then. */
const PLANNED = [
  ["planned before the tables were analysed", "select 1"],
  ["planned after small tables were analysed", "analyze"],
] as const;

/** The database's time, for functions that take the time of an operation. */
const NOW = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint";

/** So many calls of each: the first two make the plans. */
const CALLS = 4;

/**
 * Pages that a call touches once its plans are made. They say the same on every machine, which time does not. What the call did
 * is undone. The least of several calls counts: statements in other databases of the server can make PostgreSQL drop what it
 * keeps of the catalogs, and vacuum can have plans made anew, so that a single call reads many pages more.
 */
async function pagesOf(admin: Client, call: string, values: readonly unknown[] = []): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < CALLS; turn += 1)
    least = Math.min(least, await pagesOfOneCall(admin, call, values));
  return least;
}

async function pagesOfOneCall(admin: Client, call: string, values: readonly unknown[]): Promise<number> {
  await admin.query("begin");
  const { rows } = await admin.query(`explain (analyze, buffers, format json) select * from ${call}`, [
    ...values,
  ]);
  await admin.query("rollback");
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

/** An exchange of one claim, and of an end if `ends` says so: `seqs, tokens, results, more`. */
function exchangeOf(ends: string, limit: number): string {
  return `serve_exchanges(${NOW}, row('node-0', 1, 0, current_schema(), false, ${ends}, null, null, null, null, null, null, '{${LANE}}', '{${limit}}',
    '{null}', '{null}', null, null, null, null, null, null, null, null)::exchange_request, null, false)`;
}

function pagesOfClaim(admin: Client): Promise<number> {
  return pagesOf(admin, exchangeOf("'{}', '{}', '{}', null", CLAIM_MAX));
}

/** Ends an attempt, as done unless `more` has another state, and starts up to `limit` tasks: a call and its values. */
function stepOf(
  held: ClaimedTask | undefined,
  limit: number,
  more?: object,
  result: string | null = "1",
): [string, unknown[]] {
  const rest = more === undefined ? null : JSON.stringify([{ token: held?.token, state: "done", ...more }]);
  return [
    exchangeOf("$1::bigint[], $2::bigint[], $3::text[], $4::json", limit),
    [[held?.task.seq], [held?.token], [result], rest],
  ];
}

async function claim(storage: Storage, limit: number) {
  const params = { node: "node-0", finishes: [], progress: [], claims: [{ lane: LANE, limit }] };
  return (await storage.tasks.finishAndClaim(params)).claimed;
}

/** In slices, as any caller would. */
async function submitAll(storage: Storage, tasks: readonly Partial<NewTask>[]): Promise<void> {
  for (let from = 0; from < tasks.length; from += 1000) await submit(storage, tasks.slice(from, from + 1000));
}

/** What a claim touches when hardly anything waits. */
async function pagesOfSmallClaim(): Promise<number> {
  const { first, admin } = await openNodes(1);
  await submit(first, tasksOf(20, 100));
  return pagesOfClaim(admin);
}

/** What reading ten events from the start of the log touches, with the plan that serves every call. */
async function pagesOfEvents(admin: Client): Promise<number> {
  await admin.query("begin");
  await admin.query(`prepare events (bigint, bigint, bigint) as ${EVENTS_AFTER}`);
  const { rows } = await admin.query(
    "explain (analyze, buffers, format json) execute events (0, 11, 1000000)",
  );
  await admin.query("rollback");
  await admin.query("deallocate events");
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

describe("what a critical task touches that comes in", () => {
  const BUSY = 20;

  /** Agents at their limit, with so many critical tasks of theirs waiting; others run what gives way. */
  async function openCrowded(criticals: number) {
    const { first, admin } = await openNodes(1);
    const lane = {
      name: LANE,
      total: null,
      perAgent: 1,
      perTenant: null,
      strategy: "fair-fifo",
      agingMs: 0,
    } as const;
    await first.lanes.configure({ lanes: [lane] });
    await submit(first, tasksOf(BUSY, BUSY));
    await submit(
      first,
      tasksOf(BUSY, BUSY, { preemptible: true }).map((task) => ({ ...task, agent: `idle-${task.agent}` })),
    );
    await claim(first, 2 * BUSY);
    await submit(first, tasksOf(BUSY, BUSY, { priority: 0 }));
    await addCriticals(admin, criticals);
    expect(await first.counters.recountAll()).toEqual([]);
    return { first, admin };
  }

  /** Behind the storage's back: handing them in one slice after the other takes longer than all other tests here. */
  async function addCriticals(admin: Client, count: number): Promise<void> {
    await admin.query("begin; set local search_path = rota");
    await admin.query(
      `with added as (
         insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at,
                           max_retries_if_lost, spec)
         select nextval('task_seq'), 'waits-' || i || '-' || n.id, n.tenant, n.agent, n.id, 0, 0, 'queued', 0, 0, 0, '{}'
           from line n cross join generate_series(1, $1::integer) i where n.ahead
         returning line, rank, seq)
       insert into ready (line, rank, task_seq) select line, rank, seq from added`,
      [count / BUSY],
    );
    await admin.query("update line set waiting = waiting + $1, ready = ready + $1 where ahead", [
      count / BUSY,
    ]);
    for (const table of [
      "lane set waiting = waiting + $1 where name",
      "tenant_line set waiting = waiting + $1 where lane",
    ])
      await admin.query(`update ${table} = $2`, [count, LANE]);
    await admin.query("update tally set tasks = tasks + $1 where state = 'queued'", [count]);
    await admin.query("commit");
  }

  /** Of an agent that has nothing else, or of one that is at its limit. */
  async function pagesOfArrival(admin: Client, agent: string): Promise<number> {
    const task = newTask({ agent, priority: 0 });
    const form = {
      tenant: task.tenant,
      agent,
      lane: task.lane,
      kind: task.spec.work.kind,
      priority: task.priority,
      max_retries_if_lost: 0,
    };
    const call = "insert_tasks(null, $1, '{1}', $2, '{}', '{1}', '[]', 1000000, 1000000, 1000000)";
    return pagesOf(admin, call, [JSON.stringify([form]), [task.id]]);
  }

  test("does not grow with the critical tasks of full agents, whether it takes a slot or finds one free", async () => {
    const small = await openCrowded(100);
    const large = await openCrowded(100_000);
    for (const slots of [2 * BUSY, 2 * BUSY + 5]) {
      const params = { node: "node-0", slots: { [LANE]: slots } };
      for (const { first } of [small, large]) await first.nodes.setSlots(params);
      for (const agent of ["idle-agent-0", "agent-0", "fresh"]) {
        const pages = await pagesOfArrival(small.admin, agent);
        expect(await pagesOfArrival(large.admin, agent)).toBeLessThan(2 * pages);
      }
    }
  });
});

test("an end stays on the page of its task, so that no index changes with it", async () => {
  const { first, admin } = await openNodes(1);
  await submit(first, tasksOf(10, 300));
  const pages = async () => {
    const { rows } = await admin.query(
      "select seq, (ctid::text::point)[0] as page from rota.task order by seq",
    );
    return rows;
  };
  const before = await pages();
  const held = await claim(first, 300);
  const finishes = held.map(({ token, task }) => ({
    seq: task.seq,
    token,
    settlement: { to: "done", result: null } as const,
  }));
  await first.tasks.finishAndClaim({ node: "node-0", finishes, progress: [], claims: [] });
  expect(await pages()).toEqual(before);
});

describe("what an end touches in a batch with a bound", () => {
  /** Pages for the end of one of so many tasks, which lets another one in. */
  async function pagesOfEnd(tasks: number): Promise<number> {
    const { first, admin } = await openNodes(1);
    const batch = { id: "bounded", tenant: TENANT, parallelism: 3, callbackUrl: null };
    await first.tasks.insert({
      tasks: tasksOf(10, tasks, { batch: batch.id }).map(newTask),
      batches: [batch],
      limits: ROOMY,
    });
    const [held] = await claim(first, 3);
    const step = stepOf(held, CLAIM_MAX);
    return pagesOf(admin, ...step);
  }

  test("does not grow with the tasks that it holds back", async () => {
    expect(await pagesOfEnd(5_000)).toBeLessThan(2 * (await pagesOfEnd(50)));
  });
});

describe("what a step with concurrency keys touches", () => {
  const MANY = 10_000;

  function keyed(agents: number, count: number, keyOf: (index: number) => string): Partial<NewTask>[] {
    return tasksOf(agents, count).map((task, index) => ({ ...task, concurrencyKey: keyOf(index) }));
  }

  /** Pages for an end and the starts that follow, with plans that were made while there was little. */
  async function pagesOfStep(admin: Client, held: ClaimedTask | undefined): Promise<number> {
    const step = stepOf(held, CLAIM_MAX);
    return pagesOf(admin, ...step);
  }

  test.each([
    ["what waits for the key", () => "k"],
    ["the keys that there are", (index: number) => `key-${index}`],
    ["the keys that tasks wait for", (index: number) => `key-${index % (MANY / 2)}`],
  ])("does not grow with %s", async (_what, keyOf) => {
    const { first, admin } = await openNodes(1);
    await submit(
      first,
      keyed(1, 60, () => "k"),
    );
    const [held] = await claim(first, 1);
    await submit(
      first,
      keyed(1, 60, (index) => `few-${index}`),
    );
    const small = await pagesOfStep(admin, held);
    await submitAll(first, keyed(1, MANY, keyOf));
    expect(await pagesOfStep(admin, held)).toBeLessThan(2 * small);
  });

  test("grows no further with the keys whose holders cannot start, nor with those that wait for them", async () => {
    /** An agent that is full has all the keys, and as many tasks of another wait for them that is full, too. */
    async function pagesOfStuck(keys: number, waiting: number): Promise<number> {
      const { first, admin } = await openNodes(1);
      for (const agent of ["agent-0", "other"])
        await first.agents.configure({ tenant: TENANT, agent, maxInflight: 1 });
      await submit(first, [{ agent: "agent-0" }, { agent: "other" }]);
      await claim(first, 2);
      const wanting = keyed(1, keys * (waiting + 1), (index) => `key-${index % keys}`);
      await submitAll(
        first,
        wanting.map((task, index) => (index < keys ? task : { ...task, agent: "other" })),
      );
      return pagesOfClaim(admin);
    }

    const { keys, waiting } = KEYS_LOOKED_AT;
    expect(await pagesOfStuck(4 * keys, 5)).toBeLessThan(1.5 * (await pagesOfStuck(keys, 5)));
    expect(await pagesOfStuck(5, 4 * waiting)).toBeLessThan(1.5 * (await pagesOfStuck(5, waiting)));
  });
});

describe("what the end of a task of a session touches, which lets the next one in", () => {
  const SMALL = 60;

  /** Pages for such an end and the start that follows, with plans that were made while there was little. */
  async function pagesOfStep(admin: Client, held: ClaimedTask | undefined): Promise<number> {
    const step = stepOf(held, 1);
    return pagesOf(admin, ...step);
  }

  function inSessions(sessions: number, count: number, from = 0): Partial<NewTask>[] {
    return tasksOf(10, count).map((task, index) => {
      const key = `session-${from + (index % sessions)}`;
      return { ...task, origin: "message", session: { key, maxConcurrent: 1 } };
    });
  }

  test.each([
    ["what waits in the session", 1],
    ["the sessions that there are", 20_000],
  ])("does not grow with %s", async (_what, sessions) => {
    const { first, admin } = await openNodes(1);
    await submit(first, inSessions(1, SMALL));
    const [held] = await claim(first, 1);
    const small = await pagesOfStep(admin, held);
    await submitAll(first, inSessions(sessions, 20_000));
    expect(await pagesOfStep(admin, held)).toBeLessThan(2 * small);
  });

  /** How many pages more a step touches after so many, while another program's snapshot keeps dead rows from being removed. */
  async function growthBesideSnapshot(tasks: readonly Partial<NewTask>[], steps: number): Promise<number> {
    const { first, admin, url } = await openNodes(1);
    await submitAll(first, tasks);
    const reader = new Client({ connectionString: url });
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query("begin isolation level repeatable read");
    await reader.query("select count(*) from rota.task");
    let held = await claim(first, 1);
    const before = await pagesOfStep(admin, held[0]);
    const step = { node: "node-0", progress: [], claims: [{ lane: LANE, limit: 1 }] };
    for (let count = 0; count < steps; count += 1) {
      held = (await first.tasks.finishAndClaim({ ...step, finishes: settle(held) })).claimed;
    }
    return (await pagesOfStep(admin, held[0])) - before;
  }

  test("grows little more than any other beside another program's snapshot, which keeps dead rows from being removed", async () => {
    const plain = await growthBesideSnapshot(tasksOf(10, 1_000), 400);
    expect(await growthBesideSnapshot(inSessions(1, 1_000), 400)).toBeLessThan(2.5 * plain);
  });
});

describe("what schedules and their runs touch", () => {
  const SMALL = 20;
  const MANY_RUNS = 40_000;
  /** Plans hold on from when there were few; are made when there are many that the planner has not counted; and after they were. */
  const REPLANS = ["select 1", "discard plans", "analyze schedule, run"];

  /** A few schedules, one of which has a run that is held, and what to call of them. */
  async function openFew() {
    const { first, admin } = await openNodes(1);
    const made: ScheduleRecord[] = [];
    for (let count = 0; count < SMALL; count += 1) made.push(await createSchedule(first, `agent-${count}`));
    const [busy] = made as [ScheduleRecord, ...ScheduleRecord[]];
    const dueAt = 1;
    const at = { dueAt, firstDueAt: dueAt, moments: 1, forced: false };
    const task = newTask({ agent: busy.agent, origin: "run", schedule: busy.id });
    const run = { ...at, status: "running", requestId: "r", replaces: false, task } as const;
    await first.schedules.fire({ fires: [{ ...busy, runs: [run], nextFireAt: 2, pauses: null }] });
    const [held] = await claim(first, 1);
    return { first, admin, calls: callsOn({ ...busy, revision: busy.revision + 1 }, made.slice(1), held) };
  }

  function createSchedule(storage: Storage, agent: string): Promise<ScheduleRecord> {
    const definition = newDefinition({ agent });
    const status = "active";
    return storage.schedules.create({ tenant: TENANT, definition, status, nextFireAt: 1, source: null });
  }

  /** Behind the storage's back: of others, of this tenant and of another, none of them due. */
  async function addMany(admin: Client, schedules: number): Promise<void> {
    const tenant = `case when i % 3 = 0 then 'zeta' else '${TENANT}' end`;
    await admin.query(
      `insert into schedule (tenant, agent, message, phrase, rule, kind, anchor_at, delete_after_run, retry_policy, overlap,
                             catch_up, status, created_at, updated_at, next_fire_at)
       select ${tenant}, 'agent-' || i % 50, '""', '', '{}', 'recurring', 0, false, '{}', 'skip', 'one', 'active', i, i, 1e15 + i
         from generate_series(1, $1::integer) i`,
      [schedules],
    );
    await admin.query(
      `insert into run (id, tenant, schedule, agent, task_id, due_at, first_due_at, moments, forced, status, started_at,
                        completed_at)
       select nextval('run_id'), ${tenant}, 1000 + i % 1000, 'a', 'ended-' || i, i, i, 1, false,
              case when i % 1000 = 0 then 'failed' else 'succeeded' end, 1e15 + i, 1e15 + i
         from generate_series(1, $1::integer) i`,
      [MANY_RUNS],
    );
  }

  function callsOn(busy: ScheduleRecord, others: readonly ScheduleRecord[], held: ClaimedTask | undefined) {
    let made = 0;
    const at = { due_at: 9, first_due_at: 9, moments: 1, forced: false };
    const fire = (schedules: readonly ScheduleRecord[], run: object): [string, unknown[]] => {
      const fires = schedules.map(({ tenant, id, revision }, n) => ({
        n,
        tenant,
        id,
        revision,
        next_fire_at: 9,
      }));
      const runs = schedules.map(({ id }, n) => ({ n, fire: n, schedule: id, ...at, ...run }));
      return ["fire_schedules(null, $1, $2, null)", [JSON.stringify(fires), JSON.stringify(runs)]];
    };
    const task = (agent: string) => {
      made += 1;
      const limits = { priority: 2, max_retries_if_lost: 0, depends_on: [] };
      return { id: `made-${made}`, tenant: TENANT, agent, lane: LANE, origin: "run", ...limits, spec: "{}" };
    };
    const calls: Record<string, () => [string, unknown[]]> = {
      fire: () => fire([busy], { status: "running", request_id: "r", task: task(busy.agent) }),
      replace: () =>
        fire([busy], { status: "running", request_id: "r", replaces: true, task: task(busy.agent) }),
      miss: () => fire([busy], { status: "missed", reason: "r" }),
      "miss several": () => fire(others, { status: "missed", reason: "r" }),
      "find what is due": () => ["due_schedules(2, 100, '')", []],
      change: () => [
        'update_schedule(null, $1, $2, $3, \'{"status":"paused"}\', null, true, 1000, null)',
        [TENANT, busy.id, busy.revision],
      ],
      delete: () => ["delete_schedule(null, $1, $2, $3, 500)", [TENANT, busy.id, false]],
      "end a run": () => stepOf(held, 1, { summary: "s" }),
      "cancel a run": () => ["cancel_tasks(null, $1, $2, null)", [TENANT, [held?.task.id]]],
      prune: () => ["prune_runs(null, 1000000000, 100)", []],
    };
    return calls;
  }

  test.each(PLANNED)(
    "does not grow with how many there are, whenever that was planned, first %s",
    async (_, plan) => {
      const { first, admin, calls } = await openFew();
      await admin.query(plan);
      const few = new Map<string, number>();
      for (const [name, call] of Object.entries(calls)) {
        few.set(name, await pagesOf(admin, ...call()));
      }
      await addMany(admin, 20_000);
      for (const replan of REPLANS) {
        await admin.query(replan);
        for (const [name, call] of Object.entries(calls)) {
          // Indexes that are higher, and rows that lie on more pages.
          const pagesMax = 2 * (few.get(name) ?? 0) + 30;
          expect(await pagesOf(admin, ...call()), `${name} after ${replan}`).toBeLessThan(pagesMax);
        }
      }
      expect(await first.counters.recountAll()).toEqual([]);
    },
  );

  test("does not grow with how many are due of one tenant", async () => {
    const { first, admin, calls } = await openFew();
    // Of another tenant, before and after this one.
    for (const tenant of ["aaa", "zzz"]) {
      const definition = newDefinition();
      await first.schedules.create({ tenant, definition, status: "active", nextFireAt: 1, source: null });
    }
    const due = (): [string, unknown[]] => ["due_schedules(2, 10, 'mmm')", []];
    const few = await pagesOf(admin, ...due());
    await admin.query(
      `insert into schedule (tenant, agent, message, phrase, rule, kind, anchor_at, delete_after_run, retry_policy, overlap,
                             catch_up, status, created_at, updated_at, next_fire_at)
       select '${TENANT}', 'a', '""', '', '{}', 'recurring', 0, false, '{}', 'skip', 'one', 'active', i, i, 1
         from generate_series(1, 20000) i`,
    );
    for (const replan of REPLANS) {
      await admin.query(replan);
      expect(await pagesOf(admin, ...due()), `after ${replan}`).toBeLessThan(few + 30);
      const all = await pagesOf(admin, ...(calls["find what is due"] as () => [string, unknown[]])());
      expect(all, `a hundred after ${replan}`).toBeLessThan(400);
    }
  });

  test("of a schedule whose runs wait does not grow with how many are over", async () => {
    const { first, admin } = await openNodes(1);
    const schedule = await createSchedule(first, "agent");
    const runs = Array.from({ length: 100 }, (_, hour) => {
      const at = { dueAt: hour, firstDueAt: hour, moments: 1, forced: false };
      const task = newTask({ agent: "agent", origin: "run", schedule: schedule.id });
      return { ...at, status: "running", requestId: "r", replaces: false, task } as const;
    });
    await first.schedules.fire({ fires: [{ ...schedule, runs, nextFireAt: 200, pauses: null }] });
    const count = (): [string, unknown[]] => [`count_waiting(${schedule.id}, 100)`, []];
    const few = await pagesOf(admin, ...count());
    await admin.query(
      `insert into run (id, tenant, schedule, agent, task_id, due_at, first_due_at, moments, forced, status, started_at,
                        completed_at)
       select nextval('run_id'), '${TENANT}', ${schedule.id}, 'a', 'ended-' || i, 1000 + i, 1000 + i, 1, false, 'succeeded', i, i
         from generate_series(1, ${MANY_RUNS}) i`,
    );
    for (const replan of REPLANS) {
      await admin.query(replan);
      expect(await pagesOf(admin, ...count()), `after ${replan}`).toBeLessThan(few + 100);
    }
  });

  const READINGS: Record<string, { readonly text: string; readonly values: readonly unknown[] }> = {
    "the next moment": { text: NEXT_SCHEDULE, values: [] },
    "the next moment of a tenant": { text: NEXT_SCHEDULE_OF_TENANT, values: [TENANT] },
    "a page of schedules": { text: PAGE_OF_SCHEDULES, values: [TENANT, 7, 20] },
    "a page of nothing": { text: PAGE_OF_SCHEDULES, values: ["none", 7, 20] },
    schedules: listOfSchedules({ tenant: TENANT, limit: 20 }),
    "schedules of a status": listOfSchedules({ tenant: TENANT, status: "active", limit: 20 }),
    "schedules of an agent": listOfSchedules({ tenant: TENANT, agent: "agent-3", limit: 20 }),
    "schedules by id": listOfSchedules({ tenant: TENANT, below: 1_000_000, limit: 20 }),
    "schedules of a tenant that has none": listOfSchedules({ tenant: "none", limit: 20 }),
    runs: listOfRuns({ tenant: TENANT, limit: 20 }),
    "runs of a tenant that has none": listOfRuns({ tenant: "none", limit: 20 }),
    "runs of a schedule": listOfRuns({ tenant: TENANT, schedule: 1_007, limit: 20 }),
    "runs of a schedule that has one": listOfRuns({ tenant: TENANT, schedule: 1, limit: 20 }),
    "runs that failed": listOfRuns({ tenant: TENANT, status: "failed", limit: 20 }),
    "runs that go": listOfRuns({ tenant: TENANT, status: "running", limit: 20 }),
    "runs of a schedule that failed": listOfRuns({
      tenant: TENANT,
      schedule: 1_000,
      status: "failed",
      limit: 20,
    }),
    "runs of an agent": listOfRuns({ tenant: TENANT, agent: "a", limit: 20 }),
    "runs of an agent that has none": listOfRuns({ tenant: TENANT, agent: "none", limit: 20 }),
    "runs of an agent that failed": listOfRuns({
      tenant: TENANT,
      agent: "none",
      status: "failed",
      limit: 20,
    }),
    "runs of an agent's schedule": listOfRuns({
      tenant: TENANT,
      agent: "none",
      schedule: 1_007,
      limit: 20,
    }),
    "runs of an agent of late": listOfRuns({
      tenant: TENANT,
      agent: "none",
      since: 1e15 + MANY_RUNS - 20,
      limit: 20,
    }),
    "an agent's runs since long ago": listOfRuns({ tenant: TENANT, agent: "none", since: 1e15, limit: 20 }),
    "runs of late": listOfRuns({ tenant: TENANT, since: 1e15 + MANY_RUNS - 20, limit: 20 }),
    "the first of many runs since long ago": listOfRuns({ tenant: TENANT, since: 1e15, limit: 20 }),
  };

  test("is little where a page of them is read, whenever that was planned", async () => {
    const { admin } = await openFew();
    const pagesOfReading = async (index: number, values: readonly unknown[]) => {
      const given = values.map((value) => (typeof value === "string" ? `'${value}'` : value)).join(", ");
      const execute = `execute reading_${index} ${given === "" ? "" : `(${given})`}`;
      const { rows } = await admin.query(`explain (analyze, buffers, format json) ${execute}`);
      const plan = rows[0]["QUERY PLAN"][0].Plan;
      return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    };
    for (const [index, { text, values }] of Object.values(READINGS).entries()) {
      await admin.query(`prepare reading_${index} as ${text}`);
      await pagesOfReading(index, values);
    }
    await addMany(admin, 100_000);
    for (const replan of REPLANS) {
      await admin.query(replan);
      for (const [index, [what, { values }]] of Object.entries(READINGS).entries()) {
        const pages = await pagesOfReading(index, values);
        expect(pages, `${what} after ${replan}`).toBeLessThan(what.startsWith("the next moment") ? 6 : 100);
      }
    }
  });

  test("is nothing when what ends is no run", async () => {
    const { first, admin } = await openNodes(1);
    await submit(first, [{ id: "runs" }, { id: "waits" }]);
    const [held] = await claim(first, 1);
    const [step, values] = stepOf(held, 1);
    await admin.query(`begin; set local search_path = ${FUNCTION_SCHEMA}, rota`);
    await admin.query(`select ${step}`, values);
    await admin.query(
      `select cancel_tasks(null, '${TENANT}', '{waits}', null), retry_task(null, '${TENANT}', 'waits', false, null)`,
    );
    const { rows } = await admin.query(
      `select relname, idx_scan, n_tup_ins from pg_stat_xact_user_tables
        where schemaname = 'rota' and relname in ('task', 'schedule', 'run', 'notification')
          and seq_scan + idx_scan + n_tup_ins > 0`,
    );
    await admin.query("rollback");
    expect(rows.map(({ relname }) => relname)).toEqual(["task"]);
  });
});

test("what a step touches for a task is the same with one tenant and with several", async () => {
  /** Pages for fifty ends and fifty starts of these tenants, which have a thousand agents together. */
  async function pagesOfTenants(tenants: number): Promise<number> {
    const { first, admin } = await openNodes(1);
    const task = (n: number) => ({ tenant: `tenant-${n % tenants}`, agent: `agent-${n % 1000}` });
    await submitAll(
      first,
      Array.from({ length: 2_000 }, (_, n) => task(n)),
    );
    const held = (await claim(first, 50)).toSorted((a, b) => (a.task.tenant < b.task.tenant ? -1 : 1));
    const ends = [held.map(({ task: { seq } }) => seq), held.map(({ token }) => token), held.map(() => "1")];
    const step = exchangeOf("$1::bigint[], $2::bigint[], $3::text[], null", 50);
    return pagesOf(admin, step, ends);
  }

  expect(await pagesOfTenants(5)).toBeLessThan(1.2 * (await pagesOfTenants(1)));
});

test("what counting events for statistics touches does not grow with agents that get no row of their own", async () => {
  async function pagesOfAgents(agents: number): Promise<number> {
    const { first, admin } = await openNodes(1);
    await submitAll(first, tasksOf(agents, 4_000));
    return pagesOf(admin, "roll_up(null, 10000)");
  }

  expect(await pagesOfAgents(2_000)).toBeLessThan(2 * (await pagesOfAgents(200)));
});

describe("what pruning touches", () => {
  /** Pages for the entry of the log that names all tasks of a batch, which stay. */
  async function pagesOfPrune(tasks: number): Promise<number> {
    const { first, admin } = await openNodes(1);
    const batch = { id: "large", tenant: TENANT, parallelism: null, callbackUrl: null };
    await first.tasks.insert({
      tasks: tasksOf(10, tasks, { batch: batch.id }).map(newTask),
      batches: [batch],
      limits: ROOMY,
    });
    return pagesOf(admin, "prune($1, 0, 1000, 1000)", [Number.MAX_SAFE_INTEGER]);
  }

  test("grows with the tasks of a batch, not with pairs of them", async () => {
    expect(await pagesOfPrune(2_000)).toBeLessThan(20 * (await pagesOfPrune(200)));
  });
});

test.each(["empty", "full"])(
  "what reading turns touches does not grow with sessions, planned when they were %s",
  async (planned) => {
    const read = "execute turns (1, 'a', 0, 10000000, 20, 500)";

    /** Of a session with so many tasks that are done, beside others with ten times as many. */
    async function pagesOfTurns(count: number): Promise<number> {
      const { first, admin } = await openNodes(1);
      await submit(first, [{ id: "first", agent: "a", session: { key: "user:42", maxConcurrent: 1 } }]);
      await admin.query(`prepare turns (bigint, text, bigint, bigint, bigint, bigint) as ${TURNS_BEFORE}`);
      if (planned === "empty") await admin.query(read);
      await admin.query(
        `insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, completed_at,
                         max_retries_if_lost, spec, result, session, place)
       select nextval('task_seq'), 'done-' || i, t.tenant, t.agent, t.line, 2, 0, 'done', 0, 0, 0, 0, t.spec, 'null',
              t.session + i % 11, 1 + i
         from task t cross join generate_series(1, $1::integer) i where t.id = 'first'`,
        [count * 11],
      );
      if (planned === "full") await admin.query("analyze task");
      const { rows } = await admin.query(`explain (analyze, buffers, format json) ${read}`);
      const plan = rows[0]["QUERY PLAN"][0].Plan;
      expect(plan["Actual Rows"]).toBe(20);
      return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    }

    const [few, many] = [await pagesOfTurns(600), await pagesOfTurns(8_000)];
    expect(many).toBeLessThan(1.2 * few);
  },
);

test("what waits is counted without reading a task", async () => {
  const { first, admin } = await openNodes(1);
  const tasks = tasksOf(20, 5);
  await submit(first, tasks);
  await admin.query(`begin; set local search_path = ${FUNCTION_SCHEMA}, rota`);
  // Who looks for it fails.
  await admin.query("alter table rota.task rename to task_elsewhere");
  const { rows } = await admin.query(WAITING, [TENANT]);
  await admin.query("rollback");
  expect(Number(rows[0].ready)).toBe(tasks.length);
});

test("what a page of events touches does not grow with the log", async () => {
  const { first, admin } = await openNodes(1);
  for (let count = 0; count < 30; count += 1) await submit(first, tasksOf(1, 1));
  // Enough for indexes to have a second level.
  await submitAll(first, tasksOf(20, 1_000));
  await pagesOfEvents(admin);
  const small = await pagesOfEvents(admin);
  for (let count = 0; count < 300; count += 1) await submit(first, tasksOf(1, 1));
  await submitAll(first, tasksOf(20, 5_000));
  await pagesOfEvents(admin);
  expect(await pagesOfEvents(admin)).toBeLessThan(2 * small);
});

describe("what a call touches that was planned while there was little", () => {
  const OTHERS = 5_000;

  /** A few tenants with a task each, an attempt that runs, tasks that depend on others, and the calls. */
  async function openSmall() {
    const { first, admin } = await openNodes(1);
    const tenants = Array.from({ length: 40 }, (_, n) => ({ tenant: `early-${n}`, agent: `agent-${n}` }));
    await submit(first, tenants);
    await submit(first, [{ id: "parent", agent: "parent" }, { id: "other" }]);
    const held = (await claim(first, 100)).find(({ task }) => task.id === "parent");
    await submit(first, [{ id: "child", dependsOn: ["parent", "other"] }, { id: "waits" }]);
    await submit(first, [{ id: "ended" }, { id: "last", dependsOn: ["ended"] }]);
    await first.tasks.cancel({ tenant: TENANT, ids: ["ended", "last"], error: null });
    await submit(first, [{ id: "calls", agent: "calls", callbackUrl: "https://one.example" }]);
    const calling = (await claim(first, 100)).find(({ task }) => task.id === "calls");
    return { first, admin, calls: callsOn(held, calling) };
  }

  function callsOn(
    held: ClaimedTask | undefined,
    calling: ClaimedTask | undefined,
  ): Record<string, [string, unknown[]]> {
    const { kind } = newTask().spec.work;
    const form = { tenant: "new", agent: "new", lane: LANE, kind, priority: 2, max_retries_if_lost: 0 };
    const inserts = (more: object): [string, unknown[]] => [
      "insert_tasks(null, $1, '{1}', '{new}', '{}', '{1}', '[]', 1000000, 1000000, 1000000)",
      [JSON.stringify([{ ...form, ...more }])],
    ];
    return {
      "submit for a new agent": inserts({}),
      "submit for a known agent": inserts({ tenant: TENANT, agent: "parent" }),
      "submit to a queue that may be full": [
        "insert_tasks(null, $1, '{1}', '{new}', '{}', '{1}', '[]', 1, 1000000, 1000000)",
        [JSON.stringify([{ ...form, tenant: TENANT, agent: "parent" }])],
      ],
      "submit a dependant": inserts({ tenant: TENANT, agent: "parent", depends_on: ["other"] }),
      "end a task with dependants": stepOf(held, 1),
      "fail a task with dependants": stepOf(held, 1, { state: "failed", error: "e" }, null),
      "end a task with a callback": stepOf(calling, 1),
      "cancel a task": ["cancel_tasks(null, $1, '{waits}', null)", [TENANT]],
      "retry a task": ["retry_task(null, $1, 'ended', false, null)", [TENANT]],
    };
  }

  test.each(PLANNED)("does not grow with tasks, agents and tenants, %s", async (_, plan) => {
    const { first, admin, calls } = await openSmall();
    await expectNoGrowth(admin, plan, calls, async () => {
      await submitAll(first, ofTenants(OTHERS));
      await admin.query(
        `insert into rota.receiver (tenant, host) select 'late-' || n, 'late.example' from generate_series(1, ${OTHERS}) n`,
      );
    });
  });

  /** A dead node whose attempts are still held: of some the node died before, so that the next try runs alone. */
  async function openDead() {
    const { nodes, first, admin } = await openNodes(2);
    await submit(
      first,
      Array.from({ length: 40 }, (_, n) => ({ tenant: `early-${n}`, agent: "a", maxRetriesIfLost: 5 })),
    );
    const [, dying] = nodes;
    if (dying === undefined) throw new Error("There are two nodes.");
    const claims = [{ lane: LANE, limit: 5 }];
    await dying.storage.tasks.finishAndClaim({ node: dying.node, finishes: [], progress: [], claims });
    await admin.query("update rota.node set dead = true where id = 'node-1'");
    await admin.query(
      "update rota.task set losses = 4 where seq in (select task_seq from rota.lease order by task_seq limit 2)",
    );
    return { first, admin, calls: { "rescue tasks": ["rescue_tasks(null, 'node-1', 3, 9)", []] } as Calls };
  }

  test.each(PLANNED)("does not grow with tasks that are not lost, %s", async (_, plan) => {
    const { first, admin, calls } = await openDead();
    await expectNoGrowth(admin, plan, calls, () => submitAll(first, ofTenants(OTHERS)));
  });

  type Calls = Record<string, [string, unknown[]]>;

  function ofTenants(tenants: number, tasks = tenants): Partial<NewTask>[] {
    return Array.from({ length: tasks }, (_, n) => ({ tenant: `late-${n % tenants}`, agent: "a" }));
  }

  /** What each call touches with plans that were made while there was little, before and after much was added. */
  async function expectNoGrowth(
    admin: Client,
    plan: string,
    calls: Readonly<Record<string, [string, unknown[]]>>,
    add: () => Promise<void>,
  ): Promise<void> {
    await admin.query(plan);
    const few = new Map<string, number>();
    for (const [name, call] of Object.entries(calls)) few.set(name, await pagesOf(admin, ...call));
    await add();
    for (const [name, call] of Object.entries(calls)) {
      expect(await pagesOf(admin, ...call), name).toBeLessThan(2 * (few.get(name) ?? 0));
    }
  }

  /** A message to a session, as a call and its values. */
  function sends(session: string, mode: string, defaults: object = {}): [string, unknown[]] {
    const task = messageTo(session, { id: "sent" });
    return [
      "send_message(null, $1, $2, null, $3, 'm', 1, null, 1000000, null)",
      [
        JSON.stringify([{ ...toTaskRow(task), maker: "{" }]),
        mode,
        JSON.stringify({ cap: 10, drop: "old", debounceMs: 0, ...defaults }),
      ],
    ];
  }

  function messageTo(session: string, more: Partial<NewTask> = {}): NewTask {
    const { spec, ...task } = newTask({
      session: { key: session, maxConcurrent: 1 },
      origin: "message",
      ...more,
    });
    return { ...task, spec: { ...spec, work: { kind: "message", message: "m" } } };
  }

  /** Sessions in which a message runs, waits, may be taken, or waits for more. */
  async function openSessions() {
    const { first, admin } = await openNodes(1);
    const keys = Array.from({ length: 40 }, (_, n) => `early-${n}`);
    await submit(
      first,
      keys.flatMap((key) => [messageTo(key), messageTo(key), messageTo(key)]),
    );
    const defaults = { mode: "queue", cap: 10, drop: "old", debounceMs: 0 } as const;
    const held = await claim(first, keys.length);
    const [runs] = held.filter(({ task }) => task.session === keys[0]);
    const send = (session: string, mode: "queue" | "steer", debounceMs = 0) =>
      first.sessions.send({
        task: messageTo(session),
        mode,
        maxConcurrent: null,
        defaults: { ...defaults, debounceMs },
      });
    await send("early-0", "steer");
    await send("debounced", "queue", 1e9);
    await submit(first, [messageTo("delayed", { runAt: 8e15 })]);
    const wide = { key: "wide", maxConcurrent: 3 };
    await submit(first, [messageTo("", { session: wide }), messageTo("", { session: wide })]);
    const calls: Record<string, [string, unknown[]]> = {
      "send to a new session": sends("new", "queue"),
      "send to a known session": sends("early-1", "queue"),
      "drop an older message": sends("early-1", "queue", { cap: 1 }),
      "interrupt a session": sends("early-1", "interrupt"),
      "collect messages": sends("early-1", "collect"),
      "send to an attempt": sends("early-1", "steer"),
      "debounce a message": sends("new", "queue", { debounceMs: 1000 }),
      "add to a debounced message": sends("debounced", "queue", { debounceMs: 1000 }),
      "send after a debounced message": sends("debounced", "interrupt"),
      "queue after a debounced message": sends("debounced", "collect"),
      "submit to a session": [
        "insert_tasks(null, $1, '{1}', '{new}', '{}', '{1}', '[]', 1000000, 1000000, 1000000)",
        [JSON.stringify([toTaskRow(messageTo("early-1"))])],
      ],
      "end a task": stepOf(runs, 1),
      "retry a task": stepOf(runs, 1, { state: "queued", error: "e" }, null),
      "take messages": ["take_messages(null, $1, $2, 0)", [runs?.task.seq, runs?.token]],
      "post an answer": ["post_answer(null, $1, '1')", [JSON.stringify([toTaskRow(messageTo("early-1"))])]],
      "let several run": [`update_session(null, $1, 'early-1', 1, '{"maxConcurrent":3}', null)`, [TENANT]],
      "let fewer run": [`update_session(null, $1, 'wide', 1, '{"maxConcurrent":1}', null)`, [TENANT]],
      "stop a session": ["stop_session(null, $1, 'early-1', 'all', 100, null)", [TENANT]],
      "promote a message": ["promote_due(9e15::bigint, 100)", []],
    };
    return { first, admin, calls };
  }

  test.each(PLANNED)("does not grow with sessions and messages that wait, %s", async (_, plan) => {
    const { first, admin, calls } = await openSessions();
    await expectNoGrowth(admin, plan, calls, () =>
      submitAll(
        first,
        Array.from({ length: 40_000 }, (_, n) => messageTo(`late-${n % 20_000}`)),
      ),
    );
  });

  /** Tasks with keys, of which one runs and another one waits for the same key. */
  async function openKeys() {
    const { first, admin } = await openNodes(1);
    const early = Array.from({ length: 40 }, (_, n) => ({ concurrencyKey: `early-${n}` }));
    await submit(first, [...early, ...early]);
    const [held] = await claim(first, 5);
    const [same, other] = [
      newTask({ id: "same", concurrencyKey: held?.task.concurrencyKey ?? null }),
      newTask({ concurrencyKey: "new" }),
    ];
    const inserts = (task: NewTask): [string, unknown[]] => [
      "insert_tasks(null, $1, '{1}', '{new}', '{}', '{1}', '[]', 1000000, 1000000, 1000000)",
      [JSON.stringify([toTaskRow(task)])],
    ];
    const again = { key: "again", hash: "h" };
    await submit(first, [{ id: "kept", idempotency: again }]);
    const keyed = (key: string): [string, unknown[]] => [
      "insert_keyed_tasks(null, $1, '{1}', '{new}', '{}', $2, '{h}', '[]', 1000000, 1000000, 1000000, null)",
      [JSON.stringify([toTaskRow(newTask())]), [key]],
    ];
    const calls: Record<string, [string, unknown[]]> = {
      "submit with a free key": inserts(other),
      "submit with a key that is held": inserts(same),
      "submit a critical task with a key that is held": inserts({ ...same, priority: 0 }),
      "end a task with a key": stepOf(held, 1),
      "retry a task with a key": stepOf(held, 1, { state: "queued", error: "e" }, null),
      "cancel a task with a key": ["cancel_tasks(null, $1, $2, null)", [TENANT, [held?.task.id]]],
      "submit with a new idempotency key": keyed("new"),
      "submit with a known idempotency key": keyed("again"),
    };
    return { first, admin, calls };
  }

  test.each(PLANNED)("does not grow with keys, %s", async (_, plan) => {
    const { first, admin, calls } = await openKeys();
    await expectNoGrowth(admin, plan, calls, async () => {
      await submitAll(first, tasksOf(10, 20_000));
      // Behind the storage's back: handing tasks in with keys takes longer.
      await admin.query(
        `insert into rota.key_hold (tenant, key, task_seq, contested)
         select tenant, 'late-' || seq, seq, false from rota.task where agent like 'agent-%'`,
      );
      await admin.query(
        `insert into rota.idempotency_key (tenant, key, hash, task_seq, created_at)
         select tenant, 'late-' || seq, 'h', seq, ${NOW} from rota.task where agent like 'agent-%'`,
      );
    });
  });

  /** A worker with attempts and a task that waits for it, and others. */
  async function openWorkers() {
    const { first, admin } = await openNodes(1);
    await first.nodes.setAbilities({ node: "node-0", abilities: { agents: new Map(), kinds: [] } });
    for (let n = 0; n < 20; n += 1)
      await first.workers.register(newWorker({ id: `wrk_early${n}`, tenant: `early-${n}`, agents: ["*"] }));
    const worker = "wrk_mine";
    await first.workers.register(newWorker({ id: worker, agents: ["*"] }));
    await submit(
      first,
      Array.from({ length: 20 }, (_, n) => ({ tenant: `early-${n}`, agent: "a" })),
    );
    await submit(first, tasksOf(5, 20));
    const poll = {
      worker,
      claim: "before",
      max: 3,
      agents: null,
      tokens: [1, 2, 3].map((n) => ({ hash: `h${n}`, nonce: `n${n}` })),
    };
    const { claimed } = await first.workers.exchange({ finishes: [], progress: [], polls: [poll] });
    const [held] = claimed[0] ?? [];
    const polls = JSON.stringify([{ n: 0, ...poll, claim: "now", tokens: [{ hash: "h", nonce: "n" }] }]);
    const ends = [[held?.task.seq], [held?.token], [worker], [true]];
    const more = JSON.stringify([{ token: held?.token, state: "failed", error: "e" }]);
    const calls: Record<string, [string, unknown[]]> = {
      "claim for a worker": ["worker_exchange(null, '{}', '{}', '{}', '{}', '{}', null, null, $1)", [polls]],
      "claim again for a worker": [
        "worker_exchange(null, '{}', '{}', '{}', '{}', '{}', null, null, $1)",
        [JSON.stringify([{ n: 0, ...poll }])],
      ],
      "end an attempt of a worker, which asks for another": [
        "worker_exchange(null, $1, $2, $3, $4, '{1}', null, null, $5)",
        [...ends, polls],
      ],
      "fail an attempt of a worker": [
        "worker_exchange(null, $1, $2, $3, $4, '{null}', $5, null, null)",
        [...ends, more],
      ],
      "lose a worker": ["mark_worker_lost(null, $1, (select beat from worker where id = $1))", [worker]],
      "renew a worker": ["renew_workers(null, $1, '{true}')", [[worker]]],
      "name the attempts of a worker": [
        `name_attempts(null, $1, '{h1,h2}', '[{"hash":"h1","inputTokens":1}]', true)`,
        [worker],
      ],
      "take attempts back": ["take_back(null, $1, null, 10, true, 5, 'e', true)", [worker]],
      "take attempts back that were not lost": [
        "take_back(null, $1, null, 10, true, null, 'e', false)",
        [worker],
      ],
    };
    return { first, admin, calls };
  }

  test.each(PLANNED)("does not grow with tasks and tenants of other workers, %s", async (_, plan) => {
    const { first, admin, calls } = await openWorkers();
    await expectNoGrowth(admin, plan, calls, async () => {
      await admin.query(
        `insert into rota.worker (id, tenant, name, agents, slots, labels, lease_ms, heartbeat_ms, registered_at, seen_at)
         select 'wrk_late' || n, 'late-' || n, 'py', '{*}', 10, '{}', 15000, 5000, 0, 0 from generate_series(0, 4999) n`,
      );
      await admin.query(
        `insert into rota.worker_agent (tenant, agent, worker)
         select 'late-' || n, '*', 'wrk_late' || n from generate_series(0, 4999) n`,
      );
      await admin.query(
        `insert into rota.worker_attempt (hash, nonce, worker, claim, tenant, task_id, task_seq, token, number, assigned_at, ended_at)
         select 'late-' || n, 'n', 'wrk_late' || n % 5000, 'c', 'late-' || n % 5000, 'x', -n, -n, 1, 0, 1e15 from generate_series(1, 20000) n`,
      );
      await submitAll(first, ofTenants(OTHERS, 20_000));
    });
  });
});

test("what the first worker of many agents touches does not grow with its agents times the tasks that wait", async () => {
  const { first, admin } = await openNodes(1);
  await first.nodes.setAbilities({ node: "node-0", abilities: { agents: new Map(), kinds: [] } });
  await submitAll(first, tasksOf(20, 2_000));
  for (let marked = 0; marked < 2_000; marked += 500)
    await first.tasks.failUnserved({ afterMs: 1e9, limit: 500 });
  const { rows } = await admin.query("select count(*)::integer as count from rota.unserved");
  expect(rows[0].count).toBe(2_000);
  await admin.query(
    `insert into rota.worker_agent (tenant, agent, worker) select '${TENANT}', 'agent-' || n, 'wrk' from generate_series(0, 19) n`,
  );
  const pagesOfAgents = (count: number) =>
    pagesOf(admin, "worker_agents_changed(1, $1, $2, 'wrk')", [
      TENANT,
      Array.from({ length: count }, (_, n) => `agent-${n}`),
    ]);
  const one = await pagesOfAgents(1);
  expect(await pagesOfAgents(20)).toBeLessThan(5 * one);
});

test("what each further poll of workers touches does not grow with attempts, nor with agents that no worker names", async () => {
  const { first, admin } = await openNodes(1);
  await first.nodes.setAbilities({ node: "node-0", abilities: { agents: new Map(), kinds: [] } });
  const pollOf = (worker: string, max: number) => {
    const tokens = Array.from({ length: max }, (_, n) => ({ hash: `${worker}-${n}`, nonce: `${n}` }));
    return { worker, claim: "c", max, agents: null, tokens };
  };
  for (let n = 0; n < 20; n += 1)
    await first.workers.register(newWorker({ id: `wrk_${n}`, agents: ["agent-0", `own-${n}`] }));
  const busy = Array.from({ length: 10 }, (_, n) => `wrk_busy${n}`);
  for (const id of busy) await first.workers.register(newWorker({ id, agents: ["busy"], slots: 100 }));
  await submitAll(first, [...tasksOf(1, 1), ...Array.from({ length: 1_000 }, () => ({ agent: "busy" }))]);
  const pagesOfPolls = async (count: number) => {
    const polls = Array.from({ length: count }, (_, n) => ({ n, ...pollOf(`wrk_${n}`, 1) }));
    const values = [JSON.stringify(polls)];
    return pagesOf(admin, "worker_exchange(null, '{}', '{}', '{}', '{}', '{}', null, null, $1)", values);
  };
  const pagesOfFurther = async () => (await pagesOfPolls(20)) - (await pagesOfPolls(1));
  const few = await pagesOfFurther();
  const polls = busy.map((id) => pollOf(id, 100));
  const { claimed } = await first.workers.exchange({ finishes: [], progress: [], polls });
  expect(claimed.flat()).toHaveLength(1_000);
  await submitAll(
    first,
    Array.from({ length: 1_000 }, (_, n) => ({ agent: `unnamed-${n}` })),
  );
  expect(await pagesOfFurther()).toBeLessThan(1.5 * few);
});

describe("what a claim touches", () => {
  test("does not grow with the tasks or the agents that wait", async () => {
    const { first, admin } = await openNodes(1);
    await submitAll(first, tasksOf(3000, 20_000));
    expect(await pagesOfClaim(admin)).toBeLessThan(2 * (await pagesOfSmallClaim()));
  });

  test("does not grow with the tasks of one that has nearly all, once the database knows how many there are", async () => {
    const { first, admin } = await openNodes(1);
    await submitAll(first, tasksOf(1, 10_000));
    await admin.query("analyze rota.task, rota.ready, rota.line, rota.lease");
    await admin.query("discard plans");
    expect(await pagesOfClaim(admin)).toBeLessThan(2 * (await pagesOfSmallClaim()));
  });

  test("does not grow with agents that are busy, nor with urgent work of one that is full", async () => {
    const { first, admin } = await openNodes(1);
    await first.lanes.configure({
      lanes: [{ name: LANE, total: null, perAgent: 1, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
    });
    await submitAll(first, tasksOf(2000, 4000));
    const claims = [{ lane: LANE, limit: 500 }];
    for (let busy = 0; busy < 2000; busy += 500) {
      await first.tasks.finishAndClaim({ node: "node-0", finishes: [], progress: [], claims });
    }
    await submitAll(first, tasksOf(1, 5000, { priority: 0 }));
    await submit(
      first,
      tasksOf(20, 100).map(({ agent }) => ({ agent: `idle-${agent}` })),
    );
    expect(await pagesOfClaim(admin)).toBeLessThan(2 * (await pagesOfSmallClaim()));
  });

  test.each(PLANNED)(
    "does not grow with tenants that are at their bounds or disabled, nor with those that wait, %s",
    async (_, plan) => {
      const { first, admin } = await openNodes(1);
      await submit(
        first,
        Array.from({ length: 100 }, (_, n) => ({ tenant: `early-${n}`, agent: `agent-${n % 20}` })),
      );
      await admin.query(plan);
      const small = await pagesOfClaim(admin);
      const full = Array.from({ length: 10_000 }, (_, n) => ({
        tenant: `full-${n}`,
        agent: "a",
        priority: n % 2,
      }));
      await admin.query(
        `insert into rota.tenant (id, name, disabled, max_inflight, created_at, updated_at)
       select 'full-' || n, 'full-' || n, n % 3 = 0, 0, 0, 0 from generate_series(0, 9999) n`,
      );
      await admin.query("update rota.lane set second_tenant = true");
      await submitAll(first, full);
      await submitAll(
        first,
        Array.from({ length: 5_000 }, (_, n) => ({ tenant: `waits-${n}`, agent: "a" })),
      );
      expect(await first.counters.recountAll()).toEqual([]);
      expect(await pagesOfClaim(admin)).toBeLessThan(2 * small);
    },
  );

  test("does not grow with tenants that are at their share of the lane", async () => {
    const pagesBeside = async (full: number) => {
      const { first, admin } = await openNodes(1);
      await first.tenants.create({ id: "second", name: "second", limits: UNBOUNDED });
      const lane = { name: LANE, total: 100_000, perAgent: null, strategy: "fair-fifo", agingMs: 0 } as const;
      await first.lanes.configure({ lanes: [{ ...lane, perTenant: 1 }] });
      const twice = Array.from({ length: 2 * full }, (_, n) => ({ tenant: `full-${n % full}` }));
      await submitAll(first, twice);
      for (let busy = 0; busy < full; busy += 500) await claim(first, 500);
      expect(await claim(first, 1)).toEqual([]);
      const others = Array.from({ length: 100 }, (_, n) => ({
        tenant: `other-${n}`,
        agent: `agent-${n % 20}`,
      }));
      await submit(first, others);
      expect(await first.counters.recountAll()).toEqual([]);
      const pages = await pagesOfClaim(admin);
      expect(await claim(first, CLAIM_MAX)).toHaveLength(CLAIM_MAX);
      return pages;
    };
    expect(await pagesBeside(3_000)).toBeLessThan(2 * (await pagesBeside(50)));
  });

  test("does not grow with agents that only another node can execute", async () => {
    const pagesBeside = async (foreign: number) => {
      const { first, nodes, admin } = await openNodes(2);
      const mine = tasksOf(20, 100).map(({ agent }) => ({ agent: `mine-${agent}` }));
      const others = tasksOf(foreign, foreign);
      for (const [index, { node }] of nodes.entries()) {
        const tasks = index === 0 ? mine : others;
        const agents = new Map(tasks.map(({ agent }) => [agent ?? "", true]));
        await first.nodes.setAbilities({ node, abilities: { agents, kinds: [] } });
      }
      await submitAll(first, others);
      await submit(first, mine);
      const pages = await pagesOfClaim(admin);
      const claimed = await claim(first, CLAIM_MAX);
      expect(claimed.map(({ task }) => task.agent.startsWith("mine-"))).toEqual(Array(CLAIM_MAX).fill(true));
      return pages;
    };
    expect(await pagesBeside(10_000)).toBeLessThan(2 * (await pagesBeside(20)));
  });

  test("grows by less than a page a task while another program's snapshot keeps dead rows from being removed", async () => {
    const { first, admin, url } = await openNodes(1);
    await submitAll(first, tasksOf(20, 6000));
    const reader = new Client({ connectionString: url });
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query("begin isolation level repeatable read");
    await reader.query("select count(*) from rota.task");
    const before = await pagesOfClaim(admin);
    const claims = [{ lane: LANE, limit: 50 }];
    let held = await first.tasks.finishAndClaim({ node: "node-0", finishes: [], progress: [], claims });
    let wentBy = 0;
    while (wentBy < 4000) {
      const finishes = settle(held.claimed);
      held = await first.tasks.finishAndClaim({ node: "node-0", finishes, progress: [], claims });
      wentBy += finishes.length;
    }
    // The changes of the lines themselves cost something; walking over every task that has left would cost its page too.
    expect(await pagesOfClaim(admin)).toBeLessThan(before + wentBy);
  });
});

describe("what a claim of deliveries touches", () => {
  const SHARES = {
    slots: 16,
    tenantFactor: 3,
    unprovenSlots: 8,
    unprovenFactor: 1,
    perHost: 4,
    perUnprovenHost: 1,
  };

  /** Ends tasks of these tenants that call hosts back, as the storage does it. */
  async function end(storage: Storage, tenant: string, hosts: readonly string[]): Promise<void> {
    const tasks = hosts.map((host) => newTask({ tenant, callbackUrl: `https://${host}.test/` }));
    await storage.tasks.insert({ tasks, limits: ROOMY });
    await storage.tasks.cancel({ tenant, ids: tasks.map(({ id }) => id), error: null });
  }

  /** Behind the storage's back, as it would leave them: deliveries of one task to so many hosts. */
  async function addPending(
    admin: Client,
    params: { tenant: string; hosts: number; each: number; dueAt: number },
  ) {
    const { tenant, hosts, each, dueAt } = params;
    await admin.query("begin; set local search_path = rota");
    await admin.query(
      `insert into delivery (seq, tenant, task_seq, url, task_state, task_retries, task_attempts, created_at, due_at)
       select nextval('event_seq'), $1, (select min(seq) from task), 'https://h-' || h || '.test:' || e || '/', 'done', 0, 1, $4, $4
         from generate_series(1, $2::integer) h cross join generate_series(1, $3::integer) e`,
      [tenant, hosts, each, dueAt],
    );
    await admin.query(
      `insert into receiver (tenant, host, turn) select tenant, host, min(due_at) * 1000 from delivery
        where tenant = $1 and due_at is not null group by tenant, host on conflict do nothing`,
      [tenant],
    );
    await admin.query(
      "insert into delivery_turn (tenant, proven, turn) values ($1, false, $2) on conflict do nothing",
      [tenant, dueAt * 1_000],
    );
    await admin.query("commit");
  }

  function pagesOfClaimed(admin: Client, held: readonly object[] = []): Promise<number> {
    return pagesOf(admin, "claim_deliveries(null, $1, $2, 30000)", [
      JSON.stringify(SHARES),
      JSON.stringify(held),
    ]);
  }

  test.each([
    ["deliveries to one host", { hosts: 1, each: 30_000 }],
    ["hosts", { hosts: 30_000, each: 1 }],
  ])(
    "does not grow with the %s that a tenant has pending, due or not, whenever that was planned",
    async (_, many) => {
      const { first, admin } = await openNodes(1);
      await end(first, "victim", ["a", "b", "c", "d", "e", "f"]);
      await end(first, "other", ["a", "b", "c", "d", "e", "f"]);
      const few = await pagesOfClaimed(admin);
      await addPending(admin, { tenant: "due", dueAt: 1, ...many });
      await addPending(admin, { tenant: "later", dueAt: 4e12, ...many });
      for (const replan of ["discard plans", "analyze; discard plans"]) {
        for (const statement of replan.split("; ")) await admin.query(statement);
        expect(await pagesOfClaimed(admin), `after ${replan}`).toBeLessThan(2 * few + 50);
        // A tenant whose hosts all have their share is passed over, and so is one that has its own.
        const held = Array.from({ length: 4 }, (_, n) => ({
          tenant: "due",
          host: `h-${n + 1}.test`,
          proven: false,
        }));
        expect(await pagesOfClaimed(admin, held), `beside what is held, after ${replan}`).toBeLessThan(
          2 * few + 50,
        );
      }
    },
  );

  test("does not grow with tenants that have something pending", async () => {
    const { first, admin } = await openNodes(1);
    await end(first, "victim", ["a", "b", "c", "d"]);
    const few = await pagesOfClaimed(admin);
    await admin.query(
      `insert into delivery_turn (tenant, proven, turn) select 'later-' || n, n % 2 = 0, 4e15 + n from generate_series(1, 20000) n`,
    );
    await admin.query("analyze rota.delivery_turn");
    await admin.query("discard plans");
    expect(await pagesOfClaimed(admin)).toBeLessThan(2 * few + 20);
  });

  test("goes on when deliveries were deleted behind its back", async () => {
    const { first, admin } = await openNodes(1);
    await end(first, "gone", ["a", "b"]);
    await end(first, "victim", ["a"]);
    await admin.query("delete from rota.delivery where tenant = 'gone'");
    const { claimed, nextAt } = await first.deliveries.claim({ shares: SHARES, held: [], holdMs: 30_000 });
    expect(claimed.map(({ delivery }) => delivery.tenant)).toEqual(["victim"]);
    expect(nextAt).toBe(claimed[0]?.delivery.dueAt);
    const { rows } = await admin.query(
      "select count(*)::integer as left from rota.receiver where tenant = 'gone'",
    );
    expect(rows).toEqual([{ left: 0 }]);
  });
});

test("large inputs and results are not compressed the slow way under the write lock", async () => {
  const { admin } = await openNodes(1);
  const { rows } = await admin.query<{ attname: string; fast: boolean }>(
    `select attname, attcompression = 'l' or attstorage = 'e' as fast
       from pg_attribute where attrelid = 'rota.task'::regclass and attname in ('spec', 'result') order by attname`,
  );
  expect(rows).toEqual([
    { attname: "result", fast: true },
    { attname: "spec", fast: true },
  ]);
});

test("an insert that claims sends no inputs back, which a slow reader would hold the write lock for", async () => {
  const { first, admin } = await openNodes(1);
  const spec = { ...newTask().spec, work: { kind: "custom", payload: "x".repeat(100_000) } } as const;
  await submit(first, [{ id: "earlier", spec }]);
  const tasks = [newTask({ id: "new", spec }), newTask({ id: "small" })];
  const { forms, formOf, positions } = sortByForm(tasks);
  const { rows } = await admin.query<{ started: number; bytes: number }>(
    `select json_array_length(started) as started, octet_length(started::text) as bytes
       from insert_and_claim(null, $1, $2, $3, $4, $5, '[]', 100, 100, 100, 'node-0', '{${LANE}}', '{3}', '{null}', '{null}', false)`,
    [
      `[${forms.join(",")}]`,
      integers(formOf),
      tasks.map(({ id }) => id),
      specsOf(tasks).join("\n"),
      integers(positions),
    ],
  );
  expect(rows).toMatchObject([{ started: 3 }]);
  expect(rows[0]?.bytes).toBeLessThan(5_000);
});

describe("what a submit of a bounded caller touches", () => {
  test("does not grow with the tasks of others, whenever that was planned", async () => {
    const { first, admin } = await openNodes(1);
    const within = { taskId: "root", rootTaskId: "root", depth: 0 };
    const bounds = {
      ...{ tenant: TENANT, owner: "key_1", maxSubmitsPerHour: 1_000, maxOpenTasks: 1_000 },
      descendants: { root: "root", max: 1_000 },
    };
    const tasks = tasksOf(1, 50).map((task) => {
      const made = newTask(task);
      return { ...made, spec: { ...made.spec, within } };
    });
    await first.tasks.insert({ tasks, limits: ROOMY, bounds });
    const call = "count_bounded(1, $1, '{999999999}')";
    const pages = () => pagesOf(admin, call, [JSON.stringify(bounds)]);
    const few = await pages();
    await submit(first, tasksOf(20, 20_000));
    for (const replan of ["select 1", "discard plans", "analyze rota.task"]) {
      await admin.query(replan);
      // The index is higher: up to three more pages for each of the 51 tasks that are looked up. All tasks lie on a thousand.
      expect(await pages(), replan).toBeLessThanOrEqual(few + 3 * 51);
    }
  });
});

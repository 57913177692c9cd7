import type { Client } from "pg";
import { expect, test } from "vitest";
import { openNodes, prepareDatabases, submit, tasksOf } from "../../../test/postgres/several-nodes.ts";
import { OTHER_LANE, TENANT } from "../conformance/world.ts";
import { type ListTasksParams, LOOKED_MAX } from "../storage.ts";
import { listOfAudit } from "./log/audit.ts";
import { listOfDeliveries } from "./log/deliveries.ts";
import { NOTIFICATIONS_OF, surplusOfWorkers } from "./log/notifications.ts";
import { EVENTS_OF_TENANT_AFTER } from "./log/read-events.ts";
import { LIST_OF_AGENT_SESSIONS, LIST_OF_SESSIONS } from "./sessions/sessions.ts";
import { endedQuery } from "./tasks/list-ended.ts";
import { type LookedAround, listQuery } from "./tasks/list-query.ts";

prepareDatabases({ autovacuum: false });

const MANY = 20_000;
const LIMIT = 20;

// Nearly all are of one tenant, and the statistics know no other: a plan for any tenant is one for this tenant. Tasks end in turn,
// each after those before it.
const FILL = `
  insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, max_retries_if_lost,
                    completed_at, spec)
  select 1000000 + n, 'filled-' || n, '${TENANT}', 'agent-' || n % 5, (select min(id) from line), 2, 2, 'done', 0, n, 0, n, '{}'
    from generate_series(1, ${MANY}) n;
  insert into event (last_seq, count, type, at, tenant, task_seqs)
  select 1000000 + n, 1, 'task.completed', n, '${TENANT}', array[1000000 + n] from generate_series(1, ${MANY}) n;
  insert into delivery (seq, tenant, task_seq, url, task_state, task_retries, task_attempts, created_at, status)
  select 1000000 + n, '${TENANT}', 1000000 + n, 'http://a.test/', 'done', 0, 1, n, 'delivered' from generate_series(1, ${MANY}) n;
  insert into session (tenant, key, agent, default_max)
  select '${TENANT}', 'key ' || n, 'agent-' || n % 5, 1 from generate_series(1, ${MANY}) n;
  insert into notification (at, tenant, kind, schedule, agent)
  select n, '${TENANT}', 'schedule.paused', 1, 'agent-' || n % 5 from generate_series(1, ${MANY}) n;
  insert into audit_entry (at, tenant, key_id, route)
  select n, '${TENANT}', 'key_' || n % 5, 'POST /tasks' from generate_series(1, ${MANY}) n;
  analyze task; analyze event; analyze delivery; analyze session; analyze notification; analyze audit_entry`;

// As many are of another tenant, and the statistics expect a few hundred of any.
const SHARE = `
  update task set tenant = 'other' where seq % 2 = 0;
  update event set tenant = 'other' where last_seq % 2 = 0;
  analyze task; analyze event`;

interface Query {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What is read, the index that leads it, how many rows may be sorted, and how many pages it may touch. */
type List = readonly [Query, index: string, sorted: number, pages: number];

interface PlanNode {
  readonly "Node Type": string;
  readonly "Actual Rows": number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

function eventsOf(agent: string | null, session: number | null): Query {
  const after = 1_000_000;
  return {
    text: EVENTS_OF_TENANT_AFTER,
    values: [after, LIMIT + 1, 1_000_000, TENANT, agent, null, session, null],
  };
}

function ended(params: { readonly agent?: string }): Query {
  const query = endedQuery({ tenant: TENANT, order: "completed", limit: LIMIT, ...params }, (values) =>
    params.agent === undefined
      ? "(t.tenant = $1) is true"
      : `(t.tenant = $1) is true and (t.agent = $${values.push(params.agent)}) is true`,
  );
  if (query === null) throw new Error("some ended tasks are asked for");
  return query;
}

/** The parameters of a list of tasks. */
const LOOK: LookedAround = {
  session: null,
  resting: 1_000_000,
  ready: 1_000_000,
  agents: Array.from({ length: 99 }, (_, n) => `agent-${n}`),
  ids: 0,
  above: 0,
  below: Number.MAX_SAFE_INTEGER,
};

function tasks(params: Partial<ListTasksParams>, index: string): List {
  const query = listQuery({ tenant: TENANT, limit: LIMIT, lookedMax: 500, ...params }, LOOK);
  if (query === null) throw new Error("some tasks are asked for");
  // A page of the table for each task that is looked at, at most.
  return [query, index, LIMIT + 1, 600];
}

const tenant = TENANT;
const limit = LIMIT;
const sessions = (of: string) => ({ text: LIST_OF_SESSIONS, values: [of, 9e15, LIMIT + 1] });

const sessionsOf = (agent: string) => ({
  text: LIST_OF_AGENT_SESSIONS,
  values: [TENANT, 9e15, LIMIT + 1, agent],
});
const notificationsOf = (agent: string) => ({
  text: NOTIFICATIONS_OF.agent,
  values: [TENANT, 0, LIMIT + 1, agent],
});

const LISTS: Readonly<Record<string, List>> = {
  "all events of a tenant": [eventsOf(null, null), "event_by_tenant", LIMIT + 1, 300],
  "an agent's events": [eventsOf("agent-3", null), "event_by_tenant", 300, 1_000],
  "events of a session without any": [eventsOf(null, 0), "event_by_tenant", LOOKED_MAX, 8_000],
  "all tasks": tasks({}, "task_by_tenant"),
  "tasks of an empty tenant": tasks({ tenant: "empty" }, "task_by_tenant"),
  "the oldest tasks": tasks({ order: "oldest" }, "task_by_tenant"),
  "a page of tasks": tasks({ cursor: 1_009_000 }, "task_by_tenant"),
  "tasks that are done": tasks({ states: ["done"] }, "task_by_tenant"),
  "an agent's tasks": tasks({ agent: "agent-3" }, "task_by_agent"),
  "an unknown agent's tasks": tasks({ agent: "unknown" }, "task_by_agent"),
  "an agent's tasks of a priority": tasks({ agent: "agent-3", priority: 7 }, "task_by_agent"),
  "tasks of a rare priority": tasks({ priority: 0 }, "task_by_priority"),
  "critical tasks": tasks({ priorityMax: 0 }, "task_critical"),
  "tasks of a frequent priority": tasks({ priority: 2, order: "oldest" }, "task_by_tenant"),
  "tasks of an empty lane": tasks({ lane: OTHER_LANE }, "task_by_tenant"),
  "failed tasks": tasks({ states: ["failed"] }, "task_by_state"),
  "a schedule's tasks": tasks({ schedule: 5 }, "task_by_schedule"),
  "tasks of a key": tasks({ search: "nothing" }, "task_by_key"),
  deliveries: [listOfDeliveries({ tenant, limit }), "delivery_by_tenant", LIMIT + 1, 300],
  "deliveries of an empty tenant": [
    listOfDeliveries({ tenant: "empty", limit }),
    "delivery_by_tenant",
    0,
    300,
  ],
  "failed deliveries": [listOfDeliveries({ tenant, limit, status: "failed" }), "delivery_by_status", 0, 300],
  "a task's deliveries": [
    listOfDeliveries({ tenant, limit, taskId: "filled-7" }),
    "delivery_by_task",
    1,
    300,
  ],
  sessions: [sessions(TENANT), "session_newest", 0, 300],
  "sessions of an empty tenant": [sessions("empty"), "session_newest", 0, 300],
  "an agent's sessions": [sessionsOf("agent-3"), "session_by_agent", 0, 300],
  "an unknown agent's sessions": [sessionsOf("unknown"), "session_by_agent", 0, 300],
  "an agent's notifications": [notificationsOf("agent-3"), "notification_by_agent", 0, 100],
  "an unknown agent's notifications": [notificationsOf("unknown"), "notification_by_agent", 0, 100],
  "a tenant's surplus of notifications about workers": [
    { text: surplusOfWorkers("$1"), values: [TENANT] },
    ...(["notification_by_agent", 0, 100] as const),
  ],
  "the audit log": [listOfAudit({ tenant, limit }), "audit_by_tenant", 0, 300],
  "the audit log since then": [listOfAudit({ tenant, limit, since: MANY - 5 }), "audit_by_tenant", 0, 300],
  "a key's audit log": [listOfAudit({ tenant, limit, keyId: "key_3" }), "audit_by_key", 0, 300],
  "a page of the audit log": [listOfAudit({ tenant, limit, cursor: 9_000 }), "audit_by_tenant", 0, 300],
  "ended tasks": [ended({}), "event_of_end", LIMIT + 1, 600],
  "an agent's ended tasks": [ended({ agent: "agent-3" }), "event_of_end", LIMIT + 1, 3_000],
};

test("what a list of one tenant reads is led by its index: no row of others, and no sort of all of them", async () => {
  const { first, admin } = await openNodes(1);
  await submit(first, tasksOf(1, 10));
  await admin.query(FILL);
  await checkPlans(admin, "of one tenant");
  await admin.query(SHARE);
  await checkPlans(admin, "of two tenants");
});

async function checkPlans(admin: Client, whose: string): Promise<void> {
  for (const [what, [query, index, sorted, pages]] of Object.entries(LISTS)) {
    const name = `${what}, ${whose}`;
    await admin.query(`prepare listing as ${query.text}`);
    const { rows } = await admin.query(
      `explain (analyze, buffers, format json) execute listing (${query.values.map(literal).join(", ")})`,
    );
    await admin.query("deallocate listing");
    const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
    const nodes = nodesOf(plan);
    const types = nodes.map((node) => node["Node Type"]);
    const sorts = nodes.filter((node) => node["Node Type"].includes("Sort"));
    expect(JSON.stringify(plan), name).toContain(`"Index Name":"${index}"`);
    expect(types, name).not.toContain("Seq Scan");
    expect(Math.max(0, ...sorts.map((node) => node["Actual Rows"])), name).toBeLessThanOrEqual(sorted);
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], name).toBeLessThan(pages);
  }
}

function literal(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `'{${value.join(",")}}'`;
  return typeof value === "string" ? `'${value}'` : String(value);
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

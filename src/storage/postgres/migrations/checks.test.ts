import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openNodes, prepareDatabases } from "../../../../test/postgres/several-nodes.ts";
import { newTask, ROOMY } from "../../conformance/world.ts";

prepareDatabases();

const REFUSED = [
  ["task", "resting_state = 'lost'"],
  ["task", "completed_at = 1"],
  ["task", "resting_state = 'done'"],
  ["task", "resting_state = 'delayed'"],
  ["task", "resting_state = 'waiting_dependency'"],
  ["task", "result = '1'"],
  ["task", "last_outcome = 'done'"],
  ["task", "last_started_at = 1"],
  ["task", "unmet = 1"],
  ["task", "unmet = -1"],
  ["task", "dependencies = -1"],
  ["task", "parked = 'key'"],
  ["task", "parked = 'batch'"],
  ["task", "session = 1"],
  ["task", "place = 1"],
  ["task", "origin = 'other'"],
  ["task", "retry_count = -1"],
  ["task", "preemptions_left = -1"],
  ["task", "full_queue = 'agent'"],
  ["line", "waiting = -1"],
  ["line", "ready = 2"],
  ["line", "inflight = -1"],
  ["line", "parked = 2"],
  ["line", "exempt = 2"],
  ["line", "head_seq = null"],
  ["line", "room = 2"],
  ["line", "startable = false"],
  ["line", "standing = 3"],
  ["line", "standing = 1"],
  ["tenant_line", "exempt = 2"],
  ["tenant_line", "inflight = -1"],
  ["tenant_line", "urgent_lines = 2"],
  ["tenant_line", "owed = -1"],
  ["tenant_line", "ahead_streak = 8"],
  ["tenant_line", "supply = 0"],
  ["tenant_line", "disabled = true"],
  ["lane", "total = 0"],
  ["lane", "per_agent = 0"],
  ["lane", "per_tenant = 0"],
  ["lane", "strategy = 'other'"],
  ["lane", "waiting = -1"],
  ["lane", "inflight = -1"],
  ["lane", "exempt = 2"],
  ["lane", "aging_ms = -1"],
  ["lane", "tenants = -1"],
] as const;

test("the database refuses rows that break a rule", async () => {
  const { first, url } = await openNodes(1);
  await first.tasks.insert({ tasks: [newTask()], batches: [], limits: ROOMY });
  const hand = new pg.Client({ connectionString: url, options: "-c search_path=rota" });
  await hand.connect();
  onTestFinished(() => hand.end());
  for (const [table, change] of REFUSED)
    await expect(hand.query(`update ${table} set ${change}`), `${table}: ${change}`).rejects.toMatchObject({
      constraint: `${table}_check`,
    });
});

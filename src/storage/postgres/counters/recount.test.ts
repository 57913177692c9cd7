import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { openNodes, prepareDatabases } from "../../../../test/postgres/several-nodes.ts";
import { newDefinition } from "../../conformance/schedules/schedule-world.ts";
import { UNBOUNDED } from "../../conformance/tenants/share-out.ts";
import { LANE, newTask, ROOMY, TENANT } from "../../conformance/world.ts";

prepareDatabases();

/** What cannot be stored any more was stored by an older version. */
const NO_CHECKS = `
do $$
declare
  v_check record;
begin
  for v_check in
    select conname, conrelid::regclass as of from pg_constraint where contype = 'c' and connamespace = 'rota'::regnamespace
  loop
    execute format('alter table %s drop constraint %I', v_check.of, v_check.conname);
  end loop;
end $$`;

describe("a recount of a PostgreSQL database", () => {
  /** A database with a bit of everything, and a hand that changes it behind Rota's back. */
  async function openBusy() {
    const { nodes, first, url } = await openNodes(1);
    const session = { key: "s", maxConcurrent: 1 };
    await first.tasks.insert({
      tasks: [
        ...["a", "b", "c"].map((id) => newTask({ id })),
        newTask({ id: "later", runAt: (await first.now()) + 3_600_000 }),
        newTask({ id: "in-batch", batch: "bat" }),
        newTask({ id: "said", origin: "message", session }),
        newTask({ id: "said too", origin: "message", session }),
        newTask({ id: "other", agent: "other" }),
      ],
      batches: [{ id: "bat", tenant: TENANT, parallelism: 1, callbackUrl: null }],
      limits: ROOMY,
    });
    await first.tenants.create({
      id: TENANT,
      name: "Acme",
      limits: { ...UNBOUNDED, maxStoredBytes: 1_000_000 },
    });
    while ((await first.tenants.countStored({ limit: 3 })).more);
    const claims = [{ lane: LANE, limit: 1 }];
    await first.tasks.finishAndClaim({ node: nodes[0]?.node ?? "", finishes: [], progress: [], claims });
    await first.tasks.cancel({ tenant: TENANT, ids: ["b"], error: null });
    await first.schedules.create({
      tenant: TENANT,
      definition: newDefinition(),
      status: "active",
      nextFireAt: null,
      source: null,
    });
    expect(await first.counters.recountAll({ limit: 2 })).toEqual([]);
    const hand = new pg.Client({ connectionString: url, options: "-c search_path=rota" });
    await hand.connect();
    onTestFinished(() => hand.end());
    await hand.query(NO_CHECKS);
    return { storage: first, spoil: (sql: string) => hand.query(sql) };
  }

  test.for([
    ["update line set waiting = waiting + 1", /^line .* waiting$/],
    ["update stored_bytes set bytes = bytes + 1", /^stored bytes of acme$/],
    ["update line set exempt = exempt + 1", /^line .* exempt$/],
    ["update line set parked = parked + 1", /^line .* parked$/],
    ["update line set inflight = inflight + 1", /^line .* inflight$/],
    ["update line set ready = ready + 1, waiting = waiting + 1", /^line .* ready$/],
    ["update line set head_rank = head_rank + 1", /^line .* head_rank$/],
    ["update line set head_seq = head_seq + 1", /^line .* head_seq$/],
    ["update line set room = room - 1 where room > 1", /^line .* room$/],
    ["update line set ahead = not ahead", /^line .* ahead$/],
    ["update lane set waiting = waiting + 1", /^lane .* waiting$/],
    ["update lane set exempt = exempt + 1", /^lane .* exempt$/],
    ["update lane set inflight = inflight + 1", /^lane .* inflight$/],
    ["update lane set tenants = tenants + 1", /^lane .* tenants$/],
    ["update tenant_line set waiting = waiting + 1", /^tenant .* waiting$/],
    ["update tenant_line set supply = supply + 1", /^tenant .* supply$/],
    ["update tenant_line set max_inflight = 77", /^tenant .* max_inflight$/],
    ["update tally set tasks = tasks + 1 where state = 'queued'", /^tally .* queued$/],
    ["delete from tally where state = 'cancelled'", /^tally .* cancelled$/],
    ["insert into tally values ('unknown', 'done', 3)", /^tally unknown done$/],
    [
      "update task set resting_state = 'queued', completed_at = null where id = 'b'",
      /^queued tasks that are ready, held or parked$/,
    ],
    ["insert into ready select line, rank, 999 from task where id = 'a'", /^ready entries of queued tasks$/],
    ["update batch set active = active + 1", /^batch bat active$/],
    ["update batch set open = open + 1", /^batch bat open$/],
    [
      "update batch set active = 0; update task set parked = 'batch' where id = 'in-batch'",
      /^batch bat parked beside room$/,
    ],
    ["update task set batch = null where id = 'in-batch'", /^batch bat open$/],
    ["update session set active = active + 1", /^session .* active$/],
    ["update session set open = open + 1", /^session .* open$/],
    ["update session set messages = messages + 1", /^session .* messages$/],
    ["update session set parked = parked + 1", /^session .* parked$/],
    ["delete from turn", /^tasks of sessions that have their turn$/],
    ["insert into turn values (1, 'in', 99, 999, false)", /^turns of tasks$/],
    ["update schedule set open_runs = 1", /^schedule .* open_runs$/],
    ["update lease set session = 77", /^sessions of leases$/],
    ["update lease set priority = 5, tenant = 'acme'", /^leases that may be taken$/],
  ] as const)("finds what is wrong after %s", async ([sql, counter]) => {
    const { storage, spoil } = await openBusy();
    await spoil(sql);
    const found = expect.arrayContaining([expect.stringMatching(counter)]);
    expect((await storage.counters.recountAll()).map((fault) => fault.counter)).toEqual(found);
    const inSlices = await storage.counters.recountAll({ limit: 2 });
    expect(inSlices.map((fault) => fault.counter)).toEqual(found);
  });
});

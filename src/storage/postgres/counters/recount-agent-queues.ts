import type { TaskCounts } from "../../task-counts.ts";
import type { FaultRow } from "./recount.ts";
import type { RecountChecks, RecountSlices } from "./recount-slices.ts";

/** Compares the counters of agent queues with `counts`. */
export async function checkAgentQueues(recount: RecountSlices, counts: TaskCounts): Promise<void> {
  const held = new Map(
    (await recount.query<HeldRow>(COUNT_HELD, [])).map((row) => [Number(row.line), row] as const),
  );
  let suspects: number[] = [];
  const recheck = async () => {
    if (suspects.length > 0) recount.report(await recount.query<FaultRow>(RECOUNT_AGENT_QUEUES, [suspects]));
    suspects = [];
  };
  for (let after = 0, more = true; more; ) {
    const page = await recount.query<AgentQueueRow>(READ_AGENT_QUEUES, [after, recount.counters]);
    for (const queue of page) {
      after = Number(queue.id);
      if (queue.suspect || !isAsCounted(queue, held.get(after), counts)) suspects.push(after);
    }
    more = page.length === recount.counters;
    await recheck();
    await recount.sliceDone(page.length);
  }
}

function isAsCounted(queue: AgentQueueRow, held: HeldRow | undefined, counts: TaskCounts): boolean {
  const { early, parked, queued, exempt } = counts.ofAgentQueue(Number(queue.id));
  const inflight = Number(held?.tasks ?? 0);
  const ready = queued - inflight;
  return (
    queue.inflight === inflight &&
    queue.ready === ready &&
    queue.parked === parked &&
    queue.waiting === ready + early + parked &&
    queue.exempt === exempt - Number(held?.exempt ?? 0)
  );
}

interface HeldRow {
  readonly line: string;
  readonly tasks: string;
  readonly exempt: string;
}

interface AgentQueueRow {
  readonly id: string;
  readonly waiting: number;
  readonly exempt: number;
  readonly parked: number;
  readonly ready: number;
  readonly inflight: number;
  readonly suspect: boolean;
}

const COUNT_HELD = `
select l.line, count(*) as tasks, count(t.origin) as exempt
  from lease l join task t on t.seq = l.task_seq group by l.line`;

/** An agent queue is suspect if a column contradicts its other columns or its first ready task. */
const READ_AGENT_QUEUES = `
select n.id, n.waiting, n.exempt, n.parked, n.ready, n.inflight, c.wrong > 0 as suspect
  from (select * from line where id > $1 order by id limit $2) n
 cross join lateral (
   select count(*) filter (where stored is distinct from counted) as wrong from count_agent_queue_flags(array[n.id])) c
 order by n.id`;

const RECOUNT_AGENT_QUEUES = `
select name || ' ' || column_name as counter, stored, counted
  from count_agent_queues($1) where stored is distinct from counted`;

/** The ready tasks of agent queues, and the sums of agent queues by tenant and by lane. */
export const QUEUE_CHECKS: RecountChecks = {
  rows: [
    {
      name: "ready entries of queued tasks",
      first: ["-1", "0", "0"],
      text: `
select count(*) as rows, count(t.seq) as right_ones,
       (array_agg(array[r.line::text, r.rank::text, r.task_seq::text] order by r.line desc, r.rank desc, r.task_seq desc))[1:1]
         as last_key
  from (select * from ready where (line, rank, task_seq) > ($1, $2, $3) order by line, rank, task_seq limit $4) r
  left join task t on t.seq = r.task_seq and t.line = r.line and t.rank = r.rank and t.resting_state = 'queued'
   and t.parked is null`,
    },
  ],
  pages: [
    {
      ids: "select id from tenant_line where id > $1 order by id limit $2",
      faults: `
select name || ' ' || column_name as counter, stored, counted from count_tenants($1) where stored is distinct from counted`,
    },
  ],
  whole: [
    `
select 'lane ' || l.name || ' ' || c.name as counter, c.stored, c.counted
  from lane l
  left join (select n.lane, sum(n.waiting) as waiting, sum(n.inflight) as inflight,
                    sum(case when t.disabled then n.waiting else n.exempt end) as exempt
               from line n left join tenant t on t.id = n.tenant group by n.lane) n on n.lane = l.name
  left join (select lane, count(*) as tenants from tenant_line group by lane) t on t.lane = l.name
 cross join lateral (values
   ('waiting', l.waiting, coalesce(n.waiting, 0)),
   ('exempt', l.exempt, coalesce(n.exempt, 0)),
   ('second_tenant', l.second_tenant::integer, (exists (select 1 from tenant where not disabled offset 1))::integer),
   ('tenants', l.tenants, coalesce(t.tenants, 0)),
   ('inflight', l.inflight, coalesce(n.inflight, 0))) c(name, stored, counted)
 where c.stored <> c.counted`,
    `
select 'tenants without lines, and lines without tenants' as counter, wrong as stored, 0 as counted
  from (select (select count(*) from tenant_line t where not exists (select 1 from line n where n.tenant = t.tenant))
             + (select count(*) from line n
                 where not exists (select 1 from tenant_line t where t.tenant = n.tenant and t.lane = n.lane)) as wrong) w
 where wrong > 0`,
    // A lease records whether its attempt may be pre-empted.
    `
select 'leases that may be taken' as counter, stored, counted
  from (select count(l.priority) as stored, count(*) filter (where l.state = 'running' and t.priority > 0 and t.preemptions_left > 0) as counted,
               count(*) filter (where (l.priority is not null) <> (l.state = 'running' and t.priority > 0 and t.preemptions_left > 0)
                                   or l.priority <> t.priority or l.lane <> n.lane or l.tenant <> t.tenant) as wrong
          from lease l join task t on t.seq = l.task_seq join line n on n.id = t.line) f
 where wrong > 0`,
  ],
};

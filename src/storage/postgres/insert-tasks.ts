import { NEWCOMER_LEAD } from "../../model/lane.ts";
import { PREEMPTIONS_MAX } from "../../model/priority.ts";
import { rejectionError } from "../admission.ts";
import { batchConflict } from "../batch-conflict.ts";
import {
  type FullQueue,
  IDEMPOTENCY_MS,
  type InsertedTask,
  type InsertTasksParams,
  type NewBatch,
  type NewTask,
} from "../storage.ts";
import { parkedBy } from "./batches.ts";
import type { PostgresDatabase } from "./database.ts";
import { BATCH_CONFLICT, batchConflictOf, isUniqueViolation } from "./errors.ts";
import { isNoted } from "./notes.ts";
import { parentOf } from "./parent-of.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { rankOf } from "./rank.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { TENANTS_MAX } from "./share-out.ts";

/** Takes new tasks in, each admitted or rejected by itself. */
export async function insertTasks(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  if (params.tasks.length === 0) return [];
  const inserted = await insertOnce(db, params);
  db.signal({ kind: "events" });
  if (inserted.some(({ state }) => state === "cancelled")) db.signal({ kind: "deliveries" });
  if (inserted.some(({ state }) => state === "queued")) db.signal({ kind: "work" });
  if (inserted.some(({ runAt, deadline }) => runAt !== null || deadline !== null)) db.signal({ kind: "due" });
  return inserted;
}

async function insertOnce(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  try {
    return await callInsert(db, params);
  } catch (error) {
    const conflict = batchConflictOf(error);
    if (conflict !== null) throw batchConflict(conflict);
    // Looking every id up first would cost each submit a search for what almost never happens.
    if (!isUniqueViolation(error)) throw error;
    const known = await alreadyInserted(db, params.tasks);
    const isFirst = (id: string, place: number) => params.tasks.findIndex((task) => task.id === id) === place;
    const unknown = params.tasks.filter(({ id }, place) => !known.has(id) && isFirst(id, place));
    if (unknown.length === params.tasks.length) throw error;
    const inserted = unknown.length === 0 ? [] : await insertOnce(db, { ...params, tasks: unknown });
    const answers = new Map([...known, ...unknown.map(({ id }, place) => [id, inserted[place]] as const)]);
    return params.tasks.flatMap(({ id }) => answers.get(id) ?? []);
  }
}

async function callInsert(
  db: PostgresDatabase,
  { tasks, batches = [], limits }: InsertTasksParams,
): Promise<InsertedTask[]> {
  // Tasks with keys are taken in one by one, each after a look at its key.
  const name = tasks.some(({ idempotency }) => idempotency !== null) ? "insert_keyed_tasks" : "insert_tasks";
  const rows = await db.write<InsertedRow>({
    name,
    text: `select * from ${name}($1, $2, $3, $4, $5)`,
    values: [
      JSON.stringify(tasks.map(toNewRow)),
      JSON.stringify(batches.map(toBatchRow)),
      limits.maxQueueSize,
      limits.maxPerAgent,
    ],
  });
  return rows.map(toInserted);
}

export interface InsertedRow {
  readonly seq: string;
  readonly id: string;
  readonly state: InsertedTask["state"];
  readonly position: number;
  readonly created_at: string;
  readonly run_at: string | null;
  readonly deadline: string | null;
  readonly full: FullQueue | null;
  readonly queued: string | null;
  readonly repeats: "same" | "other" | null;
}

export function toNewRow(task: NewTask, n: number): object {
  return { n, ...toTaskRow(task) };
}

/** A new task by itself, without its place among others. */
export function toTaskRow(task: NewTask): object {
  return {
    id: task.id,
    tenant: task.tenant,
    agent: task.agent,
    lane: task.lane,
    priority: task.priority,
    run_at: task.runAt,
    deadline: task.deadline,
    deadline_after_ms: task.deadlineAfterMs,
    max_retries_if_lost: task.maxRetriesIfLost,
    max_queued: task.maxQueued,
    preemptible: task.preemptible,
    batch: task.batch,
    session: task.session?.key ?? null,
    session_max: task.session?.maxConcurrent ?? null,
    origin: task.origin === "task" ? null : task.origin,
    schedule: task.schedule,
    callback_url: task.callbackUrl,
    depends_on: task.dependsOn,
    key: task.idempotency?.key ?? null,
    hash: task.idempotency?.hash ?? null,
    // As text: the database neither looks into it nor refuses the characters that its own JSON refuses.
    spec: JSON.stringify(task.spec),
  };
}

function toBatchRow({ id, tenant, parallelism, callbackUrl }: NewBatch): object {
  return { id, tenant, parallelism, callback_url: callbackUrl };
}

export function toInserted(row: InsertedRow): InsertedTask {
  return {
    seq: Number(row.seq),
    id: row.id,
    state: row.state,
    position: row.position,
    createdAt: Number(row.created_at),
    runAt: row.run_at === null ? null : Number(row.run_at),
    deadline: row.deadline === null ? null : Number(row.deadline),
    rejection: row.full === null ? null : { full: row.full, queued: Number(row.queued) },
    repeats: row.repeats,
  };
}

/** The answers to tasks that an earlier insert, whose answer got lost, has already stored. */
async function alreadyInserted(
  db: PostgresDatabase,
  tasks: readonly NewTask[],
): Promise<Map<string, InsertedTask>> {
  const rows = await db.read<InsertedRow>({
    name: "already_inserted",
    text: "select * from already_inserted($1)",
    values: [tasks.map(({ id }) => id)],
  });
  return new Map(rows.map((row) => [row.id, toInserted(row)]));
}

/** What follows once all are taken in. */
const FOLLOW_UP = `
  if json_array_length(p_batches) > 0 then perform keep_batches(p_batches); end if;
  if exists (select 1 from release) or ${isNoted("sessions")} or ${isNoted("batches")} then
    perform settle_moves(v_now, ${RELEASED_MAX});
  end if;
  ${PREEMPT}`;

/**
 * Two of a kind: where no tenant has a bound on what waits, which is the rule, nobody asks for it. Every part of a statement
 * takes its time to be made ready, whether or not it finds something to do.
 */
function admitTasks({ tenantsBounded }: { tenantsBounded: boolean }): string {
  const only = (part: string) => (tenantsBounded ? part : "");
  return `
-- Admits each task as if it came alone: by its place among its agent's tasks, then among its tenant's that had room there,
-- then among all that had room there.
-- Those of which the line or the session is not known are left out. sessioned: whether any has a session.
create function ${tenantsBounded ? "admit_of_bounded" : "admit_tasks"}(
  p_now bigint, p_tasks json, p_max_queue bigint, p_max_agent bigint, out tasks admitted_task[], out sessioned boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_first bigint := nextval('task_seq');
  v_waiting bigint;
  v_aging jsonb;
begin
  perform setval('task_seq', v_first + json_array_length(p_tasks) - 1);
  select coalesce(sum(waiting - exempt), 0), jsonb_object_agg(name, aging_ms) filter (where aging_ms > 0)
    into v_waiting, v_aging from lane;
  with asked as (
    select * from json_to_recordset(p_tasks) as j(
      n bigint, id text, tenant text, agent text, lane text, priority integer, run_at bigint, deadline bigint,
      deadline_after_ms bigint, max_retries_if_lost integer, max_queued integer, preemptible boolean, batch text,
      session text, session_max integer, origin text, schedule bigint, callback_url text, depends_on json, spec text)),
  agents as (
    select a.tenant, a.agent, sum(o.waiting) as waiting, sum(o.waiting - o.exempt) as counted
      from (select distinct tenant, agent from asked) a
      join line o on o.tenant = a.tenant and o.agent = a.agent
     group by a.tenant, a.agent),
  ${only(`tenants as (
    select a.tenant, t.max_queued,
           case when t.max_queued is not null
                then (select sum(n.waiting - n.exempt) from tenant_line n where n.tenant = a.tenant) end as counted
      from (select distinct tenant from asked) a left join tenant t on t.id = a.tenant),`)}
  -- What came as anything but a task is neither counted nor refused.
  placed as (
    select q.*, coalesce(q.max_queued, p_max_agent) as max_agent, a.waiting as agent_waiting, a.counted as agent_counted,
           ${only("b.max_queued as max_tenant, b.counted as tenant_counted,")}
           row_number() over agent as place, count(*) filter (where q.origin is null) over agent as counted_place
      from asked q join agents a on a.tenant = q.tenant and a.agent = q.agent
      ${only("join tenants b on b.tenant = q.tenant")}
    window agent as (partition by q.tenant, q.agent order by q.n)),
  judged as (
    select a.*, origin is null and agent_counted + counted_place <= max_agent as agent_ok,
           -- None of this call is done: only those that were there before can be.
           case when json_array_length(a.depends_on) = 0 then 0
                else (select count(*) from json_array_elements_text(a.depends_on) d(id)
                       where ${parentOf("d.id", "a.tenant", "p.resting_state")} is distinct from 'done') end as unmet,
           count(*) filter (where origin is null and agent_counted + counted_place <= max_agent)
             over (${only("partition by tenant")} order by n) as ${tenantsBounded ? "tenant_upto" : "admitted_upto"}
      from placed a),
  ${only(`bounded as (
    select j.*, agent_ok and (tenant_counted + tenant_upto > max_tenant) is not true as tenant_ok,
           count(*) filter (where agent_ok and (tenant_counted + tenant_upto > max_tenant) is not true) over (order by n)
             as admitted_upto
      from judged j),`)}
  decided as (
    select j.*,
           case when origin is not null then null
                when v_waiting + admitted_upto - ${tenantsBounded ? "tenant_ok" : "agent_ok"}::integer >= p_max_queue then 'global'
                ${only("when tenant_counted + tenant_upto - agent_ok::integer >= max_tenant then 'tenant'")}
                when not agent_ok then 'agent' end as "full",
           case when session is not null
                then (select s.id from session s where s.tenant = j.tenant and s.key = j.session) end as session_id
      from ${tenantsBounded ? "bounded" : "judged"} j)
  select array_agg(row(d.n, v_first + d.n, d.id, d.tenant, d.agent, o.id, d.priority,
           ${rankOf({
             priority: "d.priority",
             since: "greatest(p_now, d.run_at)",
             agingMs: "coalesce((v_aging ->> d.lane)::bigint, 0)",
           })},
           case when d."full" is not null then 'rejected' when d.unmet > 0 then 'waiting_dependency'
                when d.run_at > p_now then 'delayed' else 'queued' end,
           case when d."full" is not null or d.unmet > 0 or d.run_at > p_now or d.session_id is not null then null
                else ${parkedBy("d.batch")} end,
           case when d."full" is not null or d.unmet > 0 or d.run_at > p_now then 0
                when d.origin is null or not exists (select 1 from decided r where r."full" is not null)
                then d.agent_waiting + d.place
                -- Only what is never refused can come after what was.
                else d.agent_waiting + d.place - (
                       select count(*) from decided r
                        where r.tenant = d.tenant and r.agent = d.agent and r.n < d.n and r."full" is not null) end,
           d.run_at,
           coalesce(d.deadline, case when d."full" is not null or d.unmet = 0
                                     then greatest(p_now, d.run_at) + d.deadline_after_ms end),
           case when d.deadline is null then d.deadline_after_ms end,
           d.max_retries_if_lost, case when d.preemptible then ${PREEMPTIONS_MAX} else 0 end, d.batch,
           d.session_id, d.session_max, d.origin, d.schedule, d.callback_url, json_array_length(d.depends_on),
           case when d."full" is null then d.unmet else 0 end, d.spec, d."full",
           case d."full" when 'global' then greatest(v_waiting, p_max_queue)
                         ${only("when 'tenant' then greatest(d.tenant_counted, d.max_tenant)")}
                         when 'agent' then greatest(d.agent_counted, d.max_agent) end)::admitted_task order by d.n),
         bool_or(d.session is not null)
    into tasks, sessioned
    from decided d
    join line o on o.lane = d.lane and o.tenant = d.tenant and o.agent = d.agent
   where d.session is null or d.session_id is not null;
end $$;`;
}

const ADMIT = `if v_bounded then
    select tasks, sessioned into v_tasks, v_sessioned from admit_of_bounded(v_now, p_tasks, p_max_queue, p_max_agent);
  else
    select tasks, sessioned into v_tasks, v_sessioned from admit_tasks(v_now, p_tasks, p_max_queue, p_max_agent);
  end if;`;

export const INSERT_FUNCTIONS = `
-- A new task and what admission decided. n: order within the call, from 0. "full": which queue was, if one was.
create type admitted_task as (
  n bigint, seq bigint, id text, tenant text, agent text, line bigint, priority integer, rank bigint, state text,
  parked text, "position" integer, run_at bigint, deadline bigint, deadline_after_ms bigint, max_retries_if_lost integer,
  preemptions_left integer, batch text, session bigint, session_max integer, origin text, schedule bigint, callback_url text,
  dependencies integer, unmet integer, spec text, "full" text, queued bigint);

-- What a task that was handed in is answered with.
create type inserted_task as (
  seq bigint, id text, state text, "position" integer, created_at bigint, run_at bigint, deadline bigint, "full" text,
  queued bigint, repeats text);

-- The answers to tasks that are there already.
create function already_inserted(p_ids text[]) returns setof inserted_task language sql stable as $$
  select seq, id, case when resting_state = 'rejected' then 'rejected'
                       when position > 0 then 'queued'
                       when resting_state = 'waiting_dependency' then resting_state else 'delayed' end,
         position, created_at, run_at, deadline,
         case when resting_state <> 'rejected' then null when error = '${rejectionError("global")}' then 'global'
              when error = '${rejectionError("tenant")}' then 'tenant' else 'agent' end,
         0::bigint, null::text
    from task where id = any (p_ids)
$$;

create function insert_tasks(p_now bigint, p_tasks json, p_batches json, p_max_queue bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
declare
  v_now bigint := enter(p_now);
  v_inserted inserted_task[];
begin
  if json_array_length(p_batches) > 0 then perform make_batches(v_now, p_batches); end if;
  v_inserted := array(select i from take_in(v_now, p_tasks, p_max_queue, p_max_agent) i);
  ${FOLLOW_UP}
  return query select * from as_they_are_now(v_inserted);
end $$;

-- What they depend on may have doomed some in the transaction that took them in.
create function as_they_are_now(p_inserted inserted_task[]) returns setof inserted_task language plpgsql as $$
begin
  if not exists (select 1 from unnest(p_inserted) i where i.state = 'waiting_dependency') then
    return query select * from unnest(p_inserted);
    return;
  end if;
  return query
    select i.seq, i.id, case when i.state = 'waiting_dependency' then t.resting_state else i.state end,
           i."position", i.created_at, i.run_at, i.deadline, i."full", i.queued, i.repeats
      from unnest(p_inserted) with ordinality as i(seq, id, state, "position", created_at, run_at, deadline, "full",
                                                   queued, repeats, place)
      join task t on t.seq = i.seq order by i.place;
end $$;

create function take_in(p_now bigint, p_tasks json, p_max_queue bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := p_now;
  v_tasks admitted_task[];
  v_sessioned boolean;
  v_bounded boolean := exists (select 1 from tenant where max_queued is not null);
  v_places bigint[];
  v_let_in boolean[];
  v_deltas line_delta[];
  v_batches batch_delta[];
  v_seqs bigint[];
  v_tenants text[];
  v_states text[];
  v_types text[];
  v_data text[];
begin
  ${ADMIT}
  if cardinality(v_tasks) is distinct from json_array_length(p_tasks) then
    perform make_lines(p_tasks);
    perform make_sessions(p_tasks);
    ${ADMIT}
  end if;
  if v_sessioned then
    if cardinality(v_tasks) > 1 and ends_stale_message(v_tasks) then
      return query select i.* from each_alone(p_tasks) a(tasks)
                    cross join lateral take_in(v_now, a.tasks, p_max_queue, p_max_agent) i;
      return;
    end if;
    select places, let_in into v_places, v_let_in from places_of(v_tasks);
  end if;
  with admitted as (select *, state = 'queued' and parked is null and (session is null or v_let_in[n + 1]) as ready
                      from unnest(v_tasks)),
  stored as (
    insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, parked, position, created_at, run_at,
                      deadline, deadline_after_ms, max_retries_if_lost, preemptions_left, completed_at, batch, session, place,
                      origin, schedule, callback_url, dependencies, unmet, spec, error)
    select seq, id, tenant, agent, line, priority, rank, state, parked, position, v_now, run_at,
           deadline, deadline_after_ms, max_retries_if_lost, preemptions_left, case when "full" is not null then v_now end,
           batch, session, v_places[n + 1], origin, schedule, callback_url, dependencies, unmet, spec,
           'rejected: ' || "full" || ' queue full'
      from admitted),
  placed as (
    insert into ready (line, rank, task_seq) select line, rank, seq from admitted where ready)
  select array_agg(case when ready then row(line, 1, (origin is not null)::integer, 0, 1, 0, null, rank, seq)::line_delta
                        else row(line, 1, (origin is not null)::integer, (state = 'queued')::integer, 0, 0,
                                 null, null, null)::line_delta end) filter (where "full" is null),
         array_agg(row(batch, ready::integer, 1)::batch_delta) filter (where batch is not null and "full" is null),
         array_agg(seq order by n), array_agg(tenant order by n), array_agg(state order by n),
         array_agg(case when "full" is null then 'task.created' else 'task.rejected' end order by n),
         array_agg(case when "full" is null then '{"state":"' || state || '"}'
                        else '{"error":"rejected: ' || "full" || ' queue full"}' end order by n)
    into v_deltas, v_batches, v_seqs, v_tenants, v_states, v_types, v_data from admitted;
  perform tell(take_event_numbers(cardinality(v_seqs)), v_now, v_types, v_tenants, v_seqs, v_data);
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_sessioned then perform add_turns(v_now, v_tasks, v_places, v_let_in); end if;
  perform count_tasks(v_tenants, v_states, array_fill(1, array[cardinality(v_states)]));
  if exists (select 1 from unnest(v_tasks) where dependencies > 0) then
    perform add_dependencies(p_tasks, v_seqs);
  end if;
  return query
    select seq, id, state, position, v_now, run_at, deadline, "full", queued, null::text from unnest(v_tasks) order by n;
end $$;

create function insert_keyed_tasks(
  p_now bigint, p_tasks json, p_batches json, p_max_queue bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
declare
  v_now bigint := enter(p_now);
  v_task json;
  v_alone json;
  v_inserted inserted_task;
  v_all inserted_task[] := '{}';
  v_batches text[] := array(select j.id from json_to_recordset(p_batches) as j(id text));
begin
  if json_array_length(p_batches) > 0 then perform make_batches(v_now, p_batches); end if;
  for v_alone in select each_alone(p_tasks) loop
    v_task := v_alone -> 0;
    select t.seq, t.id, coalesce(l.state, t.resting_state), t.position, t.created_at, t.run_at, t.deadline, null, null,
           case when k.hash = v_task ->> 'hash' then 'same' else 'other' end
      into v_inserted
      from idempotency_key k join task t on t.seq = k.task_seq left join lease l on l.task_seq = t.seq
     where k.tenant = v_task ->> 'tenant' and k.key = v_task ->> 'key' and k.created_at > v_now - ${IDEMPOTENCY_MS};
    if not found then
      select * into v_inserted
        from take_in(v_now, v_alone, p_max_queue, p_max_agent);
      if v_inserted."full" is null and v_task ->> 'key' is not null then
        perform keep_key(v_now, v_task, v_inserted.seq);
      end if;
    end if;
    if v_inserted.repeats = 'other' and v_task ->> 'batch' = any (v_batches) then
      raise exception 'a key in batch % was used for another request', v_task ->> 'batch'
        using errcode = '${BATCH_CONFLICT}',
              detail = json_build_object('taskId', v_inserted.id, 'refused', v_task ->> 'id')::text;
    end if;
    v_all := v_all || v_inserted;
  end loop;
  ${FOLLOW_UP}
  return query select * from as_they_are_now(v_all);
end $$;

-- From now on the key of a task stands for it.
create function keep_key(p_now bigint, p_task json, p_seq bigint) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into idempotency_key (tenant, key, hash, task_seq, created_at)
  values (p_task ->> 'tenant', p_task ->> 'key', p_task ->> 'hash', p_seq, p_now)
  on conflict (tenant, key) do update
    set hash = excluded.hash, task_seq = excluded.task_seq, created_at = excluded.created_at;
end $$;

-- Each task as a list of one.
create function each_alone(p_tasks json) returns setof json language sql immutable as $$
  select json_build_array(jsonb_set(e.task::jsonb, '{n}', '0'))
    from json_array_elements(p_tasks) with ordinality e(task, place) order by e.place
$$;

-- Lines, and the tallies of tenants, that these tasks are the first of.
create function make_lines(p_tasks json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_crowded text[];
begin
  insert into line (lane, tenant, agent, agent_max, last_served)
  select x.lane, x.tenant, x.agent, a.max_inflight, (select last_value from event_seq) - ${NEWCOMER_LEAD}
    from (select lane, tenant, agent, min(n) as first
            from json_to_recordset(p_tasks) as j(n bigint, lane text, tenant text, agent text)
           group by lane, tenant, agent) x
    left join agent a on a.tenant = x.tenant and a.agent = x.agent
   where not exists (select 1 from line n where n.lane = x.lane and n.tenant = x.tenant and n.agent = x.agent)
   order by x.first;
  with made as (
    insert into tenant_line (lane, tenant, max_inflight, disabled, crowded, last_served)
    select x.lane, x.tenant, t.max_inflight, coalesce(t.disabled, false), l.crowded,
           (select last_value from event_seq) - ${NEWCOMER_LEAD}
      from (select lane, tenant, min(n) as first
              from json_to_recordset(p_tasks) as j(n bigint, lane text, tenant text) group by lane, tenant) x
      join lane l on l.name = x.lane
      left join tenant t on t.id = x.tenant
     where not exists (select 1 from tenant_line n where n.lane = x.lane and n.tenant = x.tenant)
     order by x.first
    returning lane),
  counted as (
    update lane l set tenants = l.tenants + m.tenants, crowded = l.crowded or l.tenants + m.tenants > ${TENANTS_MAX}
      from (select lane, count(*)::integer as tenants from made group by lane) m
     where l.name = m.lane
    returning l.name, l.tenants > ${TENANTS_MAX} and l.tenants - m.tenants <= ${TENANTS_MAX} as crowded)
  select array_agg(name) into v_crowded from counted where crowded;
  if v_crowded is not null then
    update tenant_line set crowded = true where lane = any (v_crowded);
    perform refresh_tenants(array(select tenant from tenant_line where lane = any (v_crowded)));
  end if;
  insert into tally (tenant, state, tasks)
  select x.tenant, s.state, 0
    from (select distinct tenant from json_to_recordset(p_tasks) as j(tenant text)) x
   cross join unnest(array['waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected'])
                as s(state)
   where not exists (select 1 from tally y where y.tenant = x.tenant and y.state = s.state);
end $$;

${admitTasks({ tenantsBounded: false })}
${admitTasks({ tenantsBounded: true })}
`;

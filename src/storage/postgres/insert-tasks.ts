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

async function callInsert(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  const { tasks, batches = [], limits } = params;
  const { forms, formOf, places } = sortByForm(tasks);
  const given = [`[${forms.join(",")}]`, integers(formOf), tasks.map(({ id }) => id), specsOf(tasks)];
  const bounds = [JSON.stringify(batches.map(toBatchRow)), limits.maxQueueSize, limits.maxPerAgent];
  if (tasks.some(({ idempotency }) => idempotency !== null)) {
    const keys = tasks.map(({ idempotency }) => idempotency?.key ?? null);
    const hashes = tasks.map(({ idempotency }) => idempotency?.hash ?? null);
    const rows = await db.write<InsertedRow>({
      name: "insert_keyed_tasks",
      text: "select * from insert_keyed_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
      values: [...given, keys, hashes, ...bounds],
    });
    return rows.map(toInserted);
  }
  const [row] = await db.write<TakenInRow>({
    name: "insert_tasks",
    text: "select * from insert_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    values: [...given, integers(places), ...bounds],
  });
  if (row === undefined) throw new Error("Tasks are answered, whatever becomes of them.");
  if (row.each !== null) return row.each.map(toInserted);
  return tasks.map((task, n) => toAnswer(row, { task, n, form: formOf[n] ?? 0, place: places[n] ?? 0 }));
}

/** All that is known of a call of which every task was accepted and depends on nothing: of each form, what became of it. */
interface TakenInRow {
  readonly first_seq: string;
  readonly created_at: string;
  readonly forms: readonly {
    readonly state: InsertedTask["state"];
    readonly waiting: number;
    readonly deadline: number | null;
  }[];
  /** The answers themselves, where it takes more; else null. */
  readonly each: readonly InsertedRow[] | null;
}

function toAnswer(
  { first_seq, created_at, forms }: TakenInRow,
  { task, n, form, place }: { task: NewTask; n: number; form: number; place: number },
): InsertedTask {
  const taken = forms[form - 1];
  if (taken === undefined) throw new Error("Every task has a form.");
  return {
    seq: Number(first_seq) + n,
    id: task.id,
    state: taken.state,
    position: taken.state === "queued" ? taken.waiting + place : 0,
    createdAt: Number(created_at),
    runAt: task.runAt,
    deadline: taken.deadline,
    rejection: null,
    repeats: null,
  };
}

/**
 * Most tasks of a call differ from others in nothing but their id and what is to be done. All else is their form, which the
 * database looks at once: as JSON, each form once, and of each task the number of its form, from 1. `places`: which of its
 * agent's tasks in this call it is, from 1.
 */
export function sortByForm(tasks: readonly NewTask[]): {
  forms: string[];
  formOf: number[];
  places: number[];
} {
  const forms = new Map<string, number>();
  const agents = new Map<string, number>();
  const formOf: number[] = [];
  const places: number[] = [];
  for (const task of tasks) {
    const text = JSON.stringify(toForm(task));
    const form = forms.get(text) ?? forms.size + 1;
    if (form > forms.size) forms.set(text, form);
    formOf.push(form);
    // No name has this character.
    const agent = `${task.tenant}\0${task.agent}`;
    const place = (agents.get(agent) ?? 0) + 1;
    agents.set(agent, place);
    places.push(place);
  }
  return { forms: [...forms.keys()], formOf, places };
}

/** What is null is left out: there is much of it. */
function toForm(task: NewTask): object {
  const { session, origin, dependsOn } = task;
  return {
    tenant: task.tenant,
    agent: task.agent,
    lane: task.lane,
    priority: task.priority,
    run_at: task.runAt ?? undefined,
    deadline: task.deadline ?? undefined,
    deadline_after_ms: task.deadlineAfterMs ?? undefined,
    max_retries_if_lost: task.maxRetriesIfLost,
    max_queued: task.maxQueued ?? undefined,
    preemptible: task.preemptible,
    batch: task.batch ?? undefined,
    session: session?.key,
    session_max: session?.maxConcurrent,
    origin: origin === "task" ? undefined : origin,
    schedule: task.schedule ?? undefined,
    callback_url: task.callbackUrl ?? undefined,
    depends_on: dependsOn.length === 0 ? undefined : dependsOn,
  };
}

/**
 * As text: the database neither looks into it nor refuses the characters that its own JSON refuses. One for each line: JSON
 * has none inside, so nothing needs to be quoted.
 */
function specsOf(tasks: readonly NewTask[]): string {
  return tasks.map(({ spec }) => JSON.stringify(spec)).join("\n");
}

function integers(values: readonly number[]): string {
  return `{${values.join(",")}}`;
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

/** A new task by itself, as JSON has it: its form and all that is its own. */
export function toTaskRow(task: NewTask): object {
  const { id, idempotency, spec } = task;
  return { ...toForm(task), id, key: idempotency?.key, hash: idempotency?.hash, spec: JSON.stringify(spec) };
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

/** Reads forms as the client writes them, numbered from 1. */
const FORMS = `rows from (json_to_recordset(p_forms) as (
        tenant text, agent text, lane text, priority integer, run_at bigint, deadline bigint, deadline_after_ms bigint,
        max_retries_if_lost integer, max_queued integer, preemptible boolean, batch text, session text, session_max integer,
        origin text, schedule bigint, callback_url text, depends_on json)) with ordinality`;

/** What is to be known of forms: the line and the session of those that have them, and who is there before them. */
const FORMED = `
      select k.*, o.*, coalesce(k.max_queued, p_max_agent) as agent_max,
             case when k.preemptible then ${PREEMPTIONS_MAX} else 0 end as preemptions_left,
             coalesce(json_array_length(k.depends_on), 0) as dependencies,
             case when json_array_length(k.depends_on) > 0 then (
               select count(*) from json_array_elements_text(k.depends_on) d(id)
                where ${parentOf("d.id", "k.tenant", "p.resting_state")} is distinct from 'done') else 0 end as unmet,
             (select l.aging_ms from lane l where l.name = k.lane) as aging_ms,
             ${parkedBy("k.batch")} as held_by,
             case when k.session is not null
                  then (select s.id from session s where s.tenant = k.tenant and s.key = k.session) end as session_id,
             b.tenant_max, case when b.tenant_max is not null then (
               select sum(t.waiting - t.exempt) from tenant_line t where t.tenant = k.tenant) end as tenant_counted
        from ${FORMS} as k(
          tenant, agent, lane, priority, run_at, deadline, deadline_after_ms, max_retries_if_lost, max_queued, preemptible,
          batch, session, session_max, origin, schedule, callback_url, depends_on, n)
       cross join lateral (
         select max(l.id) filter (where l.lane = k.lane) as line, sum(l.waiting)::integer as waiting,
                sum(l.waiting - l.exempt) as agent_counted
           from line l where l.tenant = k.tenant and l.agent = k.agent) o
       cross join lateral (select (select t.max_queued from tenant t where t.id = k.tenant) as tenant_max offset 0) b`;

/** Whether a task of `EACH` can start. */
const READY = "v_fulls[n] is null and ((f).ready or coalesce(v_let_in[n], false))";

/** The deadline of one that is refused does not wait for what it depends on. */
const DEADLINE = `case when refused then coalesce((f).deadline, greatest(p_now, (f).run_at) + (f).deadline_after_ms)
              else (f).deadline end`;

/** The tasks of a call, each with its form. */
const EACH = `(select u.*, v_forms[u.form] as f
                 from unnest(p_form_of, p_places, p_ids, p_specs) with ordinality u(form, place, id, spec, n) offset 0)`;

export const INSERT_FUNCTIONS = `
-- What tasks of a call have in common, and what follows from it for those that are accepted. ready: once stored, they can
-- start; those of a session must be let in by that. waiting: of the agent, all; *_counted: without those that admission does
-- not count, and *_max is how many of them there may be.
create type task_form as (
  tenant text, agent text, line bigint, priority integer, rank bigint, state text, parked text, ready boolean, run_at bigint,
  deadline bigint, deadline_after_ms bigint, max_retries_if_lost integer, preemptions_left integer, batch text,
  session bigint, session_max integer, origin text, schedule bigint, callback_url text, dependencies integer, unmet integer,
  waiting integer, agent_counted bigint, agent_max bigint, tenant_counted bigint, tenant_max bigint);

-- A new task to its session. n: order within the call, from 0. "full": which queue was, if one was.
create type admitted_task as (
  n bigint, seq bigint, state text, batch text, session bigint, session_max integer, origin text, "full" text);

-- What a task that was handed in is answered with.
create type inserted_task as (
  seq bigint, id text, state text, "position" integer, created_at bigint, run_at bigint, deadline bigint, "full" text,
  queued bigint, repeats text);

-- What became of the tasks of a call: of all with the same form the same, unless "each" tells of every one.
create type taken_in as (first_seq bigint, forms task_form[], "each" inserted_task[]);

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

create function insert_tasks(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_places integer[], p_batches json,
  p_max_queue bigint, p_max_agent bigint, out first_seq bigint, out created_at bigint, out forms json, out "each" json)
language plpgsql as $$
declare
  v_now bigint := enter(p_now);
  v_taken taken_in;
begin
  if json_array_length(p_batches) > 0 then perform make_batches(v_now, p_batches); end if;
  v_taken := take_in_forms(v_now, p_forms, p_form_of, p_places, p_ids, string_to_array(p_specs, E'\\n'),
                           p_max_queue, p_max_agent);
  ${FOLLOW_UP}
  first_seq := v_taken.first_seq;
  created_at := v_now;
  if v_taken."each" is null then
    select json_agg(json_build_object('state', f.state, 'waiting', f.waiting, 'deadline', f.deadline)) into forms
      from unnest(v_taken.forms) f;
  else
    select json_agg(i) into "each" from as_they_are_now(v_taken."each") i;
  end if;
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

-- The same for tasks that are each given as JSON, in order, with all that is their own.
create function take_in(p_now bigint, p_tasks json, p_max_queue bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
#variable_conflict use_column
declare
  v_form_of integer[];
  v_places integer[];
  v_ids text[];
  v_specs text[];
begin
  select array_agg(n), array_agg(place), array_agg(id), array_agg(spec) into v_form_of, v_places, v_ids, v_specs
    from (select n, row_number() over (partition by tenant, agent order by n) as place, id, spec
            from rows from (json_to_recordset(p_tasks) as (tenant text, agent text, id text, spec text)) with ordinality
                   as j(tenant, agent, id, spec, n)
           order by n) j;
  return query select * from answers_to(
    p_now, take_in_forms(p_now, p_tasks, v_form_of, v_places, v_ids, v_specs, p_max_queue, p_max_agent),
    v_form_of, v_places, v_ids);
end $$;

create function answers_to(p_now bigint, p_taken taken_in, p_form_of integer[], p_places integer[], p_ids text[])
returns setof inserted_task language plpgsql as $$
begin
  if p_taken."each" is not null then
    return query select * from unnest(p_taken."each");
  else
    return query
      select p_taken.first_seq + u.n - 1, u.id, (u.f).state,
             case when (u.f).state = 'queued' then (u.f).waiting + u.place else 0 end,
             p_now, (u.f).run_at, (u.f).deadline, null::text, null::bigint, null::text
        from (select u.*, (p_taken.forms)[u.form] as f
                from unnest(p_form_of, p_places, p_ids) with ordinality u(form, place, id, n) offset 0) u;
  end if;
end $$;

-- Takes tasks in that share forms. p_form_of: the form of each, from 1; p_places: which of its agent's it is, from 1.
create function take_in_forms(
  p_now bigint, p_forms json, p_form_of integer[], p_places integer[], p_ids text[], p_specs text[], p_max_queue bigint,
  p_max_agent bigint)
returns taken_in language plpgsql as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_ids);
  v_first bigint;
  v_last bigint;
  v_queued bigint;
  v_forms task_form[];
  v_known boolean;
  v_alike boolean;
  v_fit boolean;
  v_sessioned boolean;
  v_dependent boolean;
  v_fulls text[];
  v_fulls_queued bigint[];
  v_places integer[] := p_places;
  v_admitted admitted_task[];
  v_turns bigint[];
  v_let_in boolean[];
  v_deltas line_delta[];
  v_batches batch_delta[];
  v_seqs bigint[];
  v_tenants text[];
  v_states text[];
  v_tasks integer[];
  v_types text[];
  v_data text[];
  v_each inserted_task[];
begin
  loop
    -- None of this call is done: of those that they depend on, only those that were there before can be.
    select array_agg(row(tenant, agent, line, priority,
                         ${rankOf({ priority: "priority", since: "greatest(p_now, run_at)", agingMs: "aging_ms" })},
                         state, case when state = 'queued' and session is null then held_by end,
                         state = 'queued' and session is null and held_by is null, run_at,
                         coalesce(deadline, case when unmet = 0 then greatest(p_now, run_at) + deadline_after_ms end),
                         case when deadline is null then deadline_after_ms end, max_retries_if_lost, preemptions_left, batch,
                         session_id, session_max, origin, schedule, callback_url, dependencies, unmet, waiting, agent_counted,
                         agent_max, tenant_counted, tenant_max)::task_form),
           bool_and(line is not null and (session is null or session_id is not null)),
           min(tenant) = max(tenant) and min(state) = max(state),
           bool_and(origin is not null
                    or (agent_counted + v_count <= agent_max and (tenant_counted + v_count > tenant_max) is not true)),
           bool_or(session is not null), bool_or(dependencies > 0), (select coalesce(sum(waiting - exempt), 0) from lane)
      into v_forms, v_known, v_alike, v_fit, v_sessioned, v_dependent, v_queued
      from (select *, case when unmet > 0 then 'waiting_dependency' when run_at > p_now then 'delayed' else 'queued' end as state
              from (${FORMED} order by k.n) k) k;
    exit when v_known;
    perform make_lines(p_forms);
    perform make_sessions(p_forms);
  end loop;
  v_first := nextval('task_seq');
  v_last := setval('task_seq', v_first + v_count - 1);
  -- Where there is room for all, whoever they are of, nobody needs to be judged.
  if not v_fit or v_queued + v_count > p_max_queue then
    select fulls, queued, places into v_fulls, v_fulls_queued, v_places
      from judge_tasks(v_forms, p_form_of, p_places, v_queued, p_max_queue);
  end if;
  if v_sessioned then
    v_admitted := array(
      select row(n - 1, v_first + n - 1, case when v_fulls[n] is null then (f).state else 'rejected' end, (f).batch,
                 (f).session, (f).session_max, (f).origin, v_fulls[n])::admitted_task
        from ${EACH} u order by n);
    if v_count > 1 and ends_stale_message(v_admitted) then
      for v_n in 1 .. v_count loop
        v_each := v_each || take_in_some(p_now, p_forms, p_form_of, p_ids, p_specs, array[v_n], p_max_queue, p_max_agent);
      end loop;
      return row(v_first, null, v_each)::taken_in;
    end if;
    select places, let_in into v_turns, v_let_in from places_of(v_admitted);
  end if;
  insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, parked, position, created_at, run_at,
                    deadline, deadline_after_ms, max_retries_if_lost, preemptions_left, completed_at, batch, session, place,
                    origin, schedule, callback_url, dependencies, unmet, spec, error)
  select v_first + n - 1, id, (f).tenant, (f).agent, (f).line, (f).priority, (f).rank,
         case when refused then 'rejected' else (f).state end, case when refused then null else (f).parked end,
         case when refused or (f).state <> 'queued' then 0 else (f).waiting + v_places[n] end, p_now, (f).run_at,
         ${DEADLINE}, (f).deadline_after_ms, (f).max_retries_if_lost, (f).preemptions_left,
         case when refused then p_now end, (f).batch, (f).session, v_turns[n], (f).origin, (f).schedule, (f).callback_url,
         (f).dependencies, case when refused then 0 else (f).unmet end, spec,
         case when refused then 'rejected: ' || v_fulls[n] || ' queue full' end
    from (select *, v_fulls[n] is not null as refused from ${EACH} u) u;
  with placed as (
    insert into ready (line, rank, task_seq)
    select (f).line, (f).rank, v_first + n - 1 from ${EACH} u where ${READY}),
  -- All of a form at once, but for critical ones, who may each need a slot that somebody else has.
  alike as (
    select form, v_fulls[n] is not null as refused, ${READY} as ready, count(*)::integer as tasks, min(n) as first
      from ${EACH} u group by form, refused, ready, case when (f).rank <= 0 then n end)
  select array_agg(row((f).line, tasks, case when (f).origin is null then 0 else tasks end,
                       case when (f).state = 'queued' and not ready then tasks else 0 end,
                       case when ready then tasks else 0 end, 0, null,
                       case when ready then (f).rank end, case when ready then v_first + first - 1 end)::line_delta)
           filter (where not refused),
         array_agg(row((f).batch, case when ready then tasks else 0 end, tasks)::batch_delta)
           filter (where (f).batch is not null and not refused),
         array_agg((f).tenant), array_agg(case when refused then 'rejected' else (f).state end), array_agg(tasks)
    into v_deltas, v_batches, v_tenants, v_states, v_tasks
    from (select *, v_forms[form] as f from alike offset 0) a;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  perform count_tasks(v_tenants, v_states, v_tasks);
  v_seqs := array(select generate_series(v_first, v_last));
  if v_alike and v_fulls is null then
    v_types := array_fill('task.created'::text, array[v_count]);
    v_tenants := array_fill(v_forms[1].tenant, array[v_count]);
    v_data := array_fill('{"state":"' || v_forms[1].state || '"}', array[v_count]);
  else
    select array_agg(case when v_fulls[n] is null then 'task.created' else 'task.rejected' end order by n),
           array_agg((f).tenant order by n),
           array_agg(case when v_fulls[n] is null then '{"state":"' || (f).state || '"}'
                          else '{"error":"rejected: ' || v_fulls[n] || ' queue full"}' end order by n)
      into v_types, v_tenants, v_data from ${EACH} u;
  end if;
  perform tell(take_event_numbers(v_count), p_now, v_types, v_tenants, v_seqs, v_data);
  if v_sessioned then perform add_turns(p_now, v_admitted, v_turns, v_let_in); end if;
  if v_dependent then perform add_dependencies(p_forms, p_form_of, v_first); end if;
  if v_dependent or v_fulls is not null then
    v_each := array(
      select row(v_first + n - 1, id, case when v_fulls[n] is null then (f).state else 'rejected' end,
                 case when v_fulls[n] is not null or (f).state <> 'queued' then 0 else (f).waiting + v_places[n] end, p_now,
                 (f).run_at, ${DEADLINE}, v_fulls[n], v_fulls_queued[n], null)::inserted_task
        from (select *, v_fulls[n] is not null as refused from ${EACH} u) u order by n);
  end if;
  return row(v_first, v_forms, v_each)::taken_in;
end $$;

-- Judges each task as if it came alone: by its place among its agent's tasks, then among its tenant's that had room there,
-- then among all that had room there. What came as anything but a task is neither counted nor refused. fulls: which queue was,
-- null where none was; queued: how many waited in it. places: without those that are refused.
create function judge_tasks(
  p_forms task_form[], p_form_of integer[], p_places integer[], p_queued bigint, p_max_queue bigint,
  out fulls text[], out queued bigint[], out places integer[])
language plpgsql as $$
#variable_conflict use_column
begin
  with placed as (
    select n, place, (f).tenant, (f).agent, (f).origin is null as counts, (f).agent_counted, (f).agent_max,
           (f).tenant_counted, (f).tenant_max,
           count(*) filter (where (f).origin is null) over (partition by (f).tenant, (f).agent order by n) as counted_place
      from (select u.*, p_forms[u.form] as f
              from unnest(p_form_of, p_places) with ordinality u(form, place, n) offset 0) u),
  judged as (
    select *, count(*) filter (where agent_ok) over (partition by tenant order by n) as tenant_upto
      from (select *, counts and agent_counted + counted_place <= agent_max as agent_ok from placed) p),
  bounded as (
    select *, count(*) filter (where tenant_ok) over (order by n) as admitted_upto
      from (select *, agent_ok and (tenant_counted + tenant_upto > tenant_max) is not true as tenant_ok from judged) j),
  decided as (
    select *, case when not counts then null
                   when p_queued + admitted_upto - tenant_ok::integer >= p_max_queue then 'global'
                   when tenant_counted + tenant_upto - agent_ok::integer >= tenant_max then 'tenant'
                   when not agent_ok then 'agent' end as "full"
      from bounded),
  moved as (
    select *, place - count("full") over (partition by tenant, agent order by n) as accepted_place from decided)
  select array_agg("full" order by n),
         array_agg(case "full" when 'global' then greatest(p_queued, p_max_queue)
                               when 'tenant' then greatest(tenant_counted, tenant_max)
                               when 'agent' then greatest(agent_counted, agent_max) end order by n),
         array_agg(accepted_place order by n)
    into fulls, queued, places from moved;
  -- Room was looked for with care: there may be enough for all.
  if array_remove(fulls, null) = '{}' then fulls := null; end if;
end $$;

-- The same where some have keys: only those are taken in whose key does not stand for another already. They come in stretches
-- in which no key is there twice, so that of several with one key the first is there when the next is looked at.
create function insert_keyed_tasks(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_keys text[], p_hashes text[],
  p_batches json, p_max_queue bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_specs text[] := string_to_array(p_specs, E'\\n');
  v_tenants text[] := array(select tenant from json_to_recordset(p_forms) as j(tenant text));
  v_from integer := 1;
  v_to integer;
  v_stretch inserted_task[];
  v_new integer[];
  v_taken inserted_task[];
  v_all inserted_task[] := '{}';
begin
  if json_array_length(p_batches) > 0 then perform make_batches(v_now, p_batches); end if;
  while v_from <= cardinality(p_ids) loop
    select coalesce(min(n) filter (where times > 1) - 1, cardinality(p_ids)) into v_to
      from (select n, row_number() over (partition by v_tenants[form], key order by n) as times
              from unnest(p_form_of, p_keys) with ordinality u(form, key, n) where n >= v_from and key is not null) u;
    -- One by one, by its key: a plan for all at once is made while there are few, and reads all of them when they are many.
    select array_agg(made order by n), array_agg(n order by n) filter (where made is null) into v_stretch, v_new
      from unnest(p_form_of, p_keys, p_hashes) with ordinality u(form, key, hash, n)
      left join lateral (
        select row(t.seq, t.id, coalesce(l.state, t.resting_state), t.position, t.created_at, t.run_at, t.deadline, null, null,
                   case when k.hash = u.hash then 'same' else 'other' end)::inserted_task as made
          from idempotency_key k join task t on t.seq = k.task_seq left join lease l on l.task_seq = t.seq
         where k.tenant = v_tenants[u.form] and k.key = u.key and k.created_at > v_now - ${IDEMPOTENCY_MS}
        offset 0) k on true
     where n between v_from and v_to;
    if json_array_length(p_batches) > 0 then
      perform refuse_conflict(p_forms, p_form_of[v_from:v_to], p_ids[v_from:v_to], p_batches, v_stretch);
    end if;
    if v_new is not null then
      v_taken := take_in_some(v_now, p_forms, p_form_of, p_ids, v_specs, v_new, p_max_queue, p_max_agent);
      for v_place in 1 .. cardinality(v_new) loop
        v_stretch[v_new[v_place] - v_from + 1] := v_taken[v_place];
      end loop;
      perform keep_keys(v_now, array_agg(v_tenants[p_form_of[n]]), array_agg(p_keys[n]), array_agg(p_hashes[n]), array_agg(seq))
         from (select n, (v_taken[place]).seq, (v_taken[place])."full" from unnest(v_new) with ordinality u(n, place)) u
        where p_keys[n] is not null and "full" is null;
    end if;
    v_all := v_all || v_stretch;
    v_from := v_to + 1;
  end loop;
  ${FOLLOW_UP}
  return query select * from as_they_are_now(v_all);
end $$;

-- A batch is taken whole: one of its tasks that asks for something else under a used key refuses all.
create function refuse_conflict(
  p_forms json, p_form_of integer[], p_ids text[], p_batches json, p_made inserted_task[])
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_conflict record;
begin
  select i.id as made, p_ids[i.n] as refused, p_forms -> p_form_of[i.n] - 1 ->> 'batch' as batch into v_conflict
    from unnest(p_made) with ordinality
           i(seq, id, state, "position", created_at, run_at, deadline, "full", queued, repeats, n)
   where i.repeats = 'other'
     and p_forms -> p_form_of[i.n] - 1 ->> 'batch' in (select id from json_to_recordset(p_batches) as j(id text))
   order by i.n limit 1;
  if not found then return; end if;
  raise exception 'a key in batch % was used for another request', v_conflict.batch
    using errcode = '${BATCH_CONFLICT}',
          detail = json_build_object('taskId', v_conflict.made, 'refused', v_conflict.refused)::text;
end $$;

-- Takes in those of a call that are at these places of it, and knows nothing of the others.
create function take_in_some(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text[], p_some integer[], p_max_queue bigint,
  p_max_agent bigint)
returns inserted_task[] language plpgsql as $$
#variable_conflict use_column
declare
  v_forms json;
  v_form_of integer[];
  v_places integer[];
  v_ids text[];
  v_specs text[];
begin
  with form as (
    select form, n from rows from (json_array_elements(p_forms)) with ordinality f(form, n)
     where n = any (array(select p_form_of[s] from unnest(p_some) s))),
  numbered as (
    select n, row_number() over (order by n) as number, form ->> 'tenant' as tenant, form ->> 'agent' as agent from form),
  chosen as (
    select u.place, f.number, row_number() over (partition by f.tenant, f.agent order by u.place) as agent_place, p_ids[u.n] as id,
           p_specs[u.n] as spec
      from unnest(p_some) with ordinality u(n, place) join numbered f on f.n = p_form_of[u.n])
  select (select json_agg(form order by n) from form), array_agg(number order by place), array_agg(agent_place order by place),
         array_agg(id order by place), array_agg(spec order by place)
    into v_forms, v_form_of, v_places, v_ids, v_specs from chosen;
  return array(
    select a from answers_to(
      p_now, take_in_forms(p_now, v_forms, v_form_of, v_places, v_ids, v_specs, p_max_queue, p_max_agent),
      v_form_of, v_places, v_ids) a);
end $$;

-- From now on the keys of tasks stand for them.
create function keep_keys(p_now bigint, p_tenants text[], p_keys text[], p_hashes text[], p_seqs bigint[])
returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into idempotency_key (tenant, key, hash, task_seq, created_at)
  select tenant, key, hash, seq, p_now from unnest(p_tenants, p_keys, p_hashes, p_seqs) u(tenant, key, hash, seq)
  on conflict (tenant, key) do update
    set hash = excluded.hash, task_seq = excluded.task_seq, created_at = excluded.created_at;
end $$;

-- Lines, and the tallies of tenants, that these tasks are the first of.
create function make_lines(p_forms json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_crowded text[];
begin
  insert into line (lane, tenant, agent, agent_max, last_served)
  select x.lane, x.tenant, x.agent, a.max_inflight, (select last_value from event_seq) - ${NEWCOMER_LEAD}
    from (select lane, tenant, agent, min(n) as first
            from rows from (json_to_recordset(p_forms) as (lane text, tenant text, agent text)) with ordinality
                   as j(lane, tenant, agent, n)
           group by lane, tenant, agent) x
    left join agent a on a.tenant = x.tenant and a.agent = x.agent
   where not exists (select 1 from line n where n.lane = x.lane and n.tenant = x.tenant and n.agent = x.agent)
   order by x.first;
  with made as (
    insert into tenant_line (lane, tenant, max_inflight, disabled, crowded, last_served)
    select x.lane, x.tenant, t.max_inflight, coalesce(t.disabled, false), l.crowded,
           (select last_value from event_seq) - ${NEWCOMER_LEAD}
      from (select lane, tenant, min(n) as first
              from rows from (json_to_recordset(p_forms) as (lane text, tenant text)) with ordinality as j(lane, tenant, n)
             group by lane, tenant) x
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
    from (select distinct tenant from json_to_recordset(p_forms) as j(tenant text)) x
   cross join unnest(array['waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected'])
                as s(state)
   where not exists (select 1 from tally y where y.tenant = x.tenant and y.state = s.state);
end $$;
`;

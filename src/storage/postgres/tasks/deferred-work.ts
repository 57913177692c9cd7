/**
 * Deferred work: what an operation still has to do before it commits. Functions deep inside the operation add it, and the
 * operation does it at its end. It is kept in settings of the transaction. Checking a setting runs no statement, unlike checking
 * a table, and an operation that defers nothing pays nothing. Returning it instead would burden every function that moves tasks.
 */
export type DeferredWork =
  /** Critical tasks that became ready, by seq. They may need a slot that another task holds. */
  | "new_critical_tasks"
  /** Sessions that have room, have admitted too many tasks or hold a stale one, by id. */
  | "sessions"
  /** Lanes to recheck: a waiting critical task there may have lost the slot it waits for, or its agent may have room now. */
  | "lanes_to_recheck"
  /** Batches that have room, or whose last task has ended, by id. */
  | "batches"
  /** Tasks that ask for their concurrency key or release it, by seq. */
  | "keys";

/** Whether there is deferred work of this kind. */
export function isDeferred(kind: DeferredWork): string {
  return `coalesce(current_setting('rota.${kind}', true), '') <> ''`;
}

export const DEFERRED_WORK_FUNCTIONS = `
create function defer_work(p_kind text, p_entries text[]) returns void language plpgsql as $$
declare
  v_name text := 'rota.' || p_kind;
begin
  perform set_config(v_name, (coalesce(nullif(current_setting(v_name, true), ''), '{}')::text[] || p_entries)::text, true);
end $$;

-- Removes and returns the deferred work of a kind; empty: there is none.
create function take_deferred_work(p_kind text) returns text[] language plpgsql as $$
declare
  v_name text := 'rota.' || p_kind;
  v_entries text[] := coalesce(nullif(current_setting(v_name, true), ''), '{}')::text[];
begin
  perform set_config(v_name, '', true);
  return v_entries;
end $$;
`;

/**
 * What an operation has to come back to before it commits: noted where it comes up, deep inside, and dealt with at the
 * end. Notes are settings of the transaction. Looking for one runs no statement, which a table would take, and whoever
 * notes nothing pays nothing; handing them up through everything that moves tasks would burden each of them.
 */
export type Note =
  /** Critical tasks that became ready, by seq: they may need a slot that somebody else has. */
  | "arrivals"
  /** Sessions that have room or too many let in, or something stale, by id. */
  | "sessions"
  /** Lanes in which a critical task that waits may have lost the slot it waits for, or found room of its agent. */
  | "lanes"
  /** Batches that have room, or of which nothing is left to end, by id. */
  | "batches"
  /** Tasks that ask for their concurrency key or let go of it, by seq. */
  | "keys";

/** Whether there is such a note. */
export function isNoted(note: Note): string {
  return `coalesce(current_setting('rota.${note}', true), '') <> ''`;
}

export const NOTE_FUNCTIONS = `
create function add_note(p_note text, p_entries text[]) returns void language plpgsql as $$
declare
  v_name text := 'rota.' || p_note;
begin
  perform set_config(v_name, (coalesce(nullif(current_setting(v_name, true), ''), '{}')::text[] || p_entries)::text, true);
end $$;

-- The note, which is gone then; empty when there is none.
create function take_note(p_note text) returns text[] language plpgsql as $$
declare
  v_name text := 'rota.' || p_note;
  v_entries text[] := coalesce(nullif(current_setting(v_name, true), ''), '{}')::text[];
begin
  perform set_config(v_name, '', true);
  return v_entries;
end $$;
`;

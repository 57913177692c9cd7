import { TURNS_BYTES_MAX, TURNS_LOOKED_AT } from "../../../model/turn.ts";
import type { ReadTurnsParams, SessionTurns } from "../../storage.ts";
import { type StoredTurn, toTurns } from "../../stored-turns.ts";
import type { PostgresDatabase } from "../connection/database.ts";

interface HeldSession {
  readonly session: string;
  readonly agent: string;
  readonly place: string;
  readonly generation: number;
  readonly generation_place: string;
  readonly context_window: string | null;
}

export async function readTurns(db: PostgresDatabase, params: ReadTurnsParams): Promise<SessionTurns | null> {
  const [held] = await db.read<HeldSession>({
    name: "held_session",
    text: `select t.session, t.agent, t.place, s.generation, s.generation_place, s.context_window
             from lease l join task t on t.seq = l.task_seq join session s on s.id = t.session
            where l.task_seq = $1 and l.token = $2 and t.place > s.generation_place`,
    values: [params.seq, params.token],
  });
  if (held === undefined) return null;
  const { generation, context_window } = held;
  return {
    generation,
    contextWindow: context_window === null ? null : Number(context_window),
    ...toTurns(params.limit === 0 ? [] : await turnsBefore(db, held, params.limit)),
  };
}

/** If a reset comes between the two statements, the attempt is fenced, whatever this returns. */
async function turnsBefore(db: PostgresDatabase, held: HeldSession, limit: number): Promise<StoredTurn[]> {
  return db.read<StoredTurn>({
    name: "turns",
    text: TURNS_BEFORE,
    values: [held.session, held.agent, held.generation_place, held.place, limit, TURNS_LOOKED_AT],
  });
}

/**
 * Selects turns without their texts, which may be long and are stored on pages of their own. The limit is a parameter: given a
 * plain number, the planner would read and sort all tasks of the session.
 */
export const TURNS_BEFORE = `
  with recent as materialized (
    select seq, place, agent, resting_state from task
     where session + 0 = $1 order by seq desc limit $6),
  chosen as materialized (
    select seq, place from recent
     where resting_state = 'done' and agent = $2 and place > $3 and place < $4
     order by place desc limit $5),
  sized as (
    select c.seq, c.place, sum(octet_length(t.spec) + octet_length(t.result)) over (order by c.place desc) as bytes
      from chosen c join task t on t.seq = c.seq)
  select t.id, t.spec, t.result from sized z join task t on t.seq = z.seq
   where z.bytes <= ${TURNS_BYTES_MAX} order by z.place`;

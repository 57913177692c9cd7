import { TURNS_BYTES_MAX, TURNS_LOOKED_AT } from "../../../model/turn.ts";
import type { ReadTurnsParams, SessionTurns } from "../../storage.ts";
import { type StoredTurn, toTurns } from "../../stored-turns.ts";
import type { SqliteDatabase } from "../connection/database.ts";

interface HeldSession {
  readonly session: number;
  readonly agent: string;
  readonly place: number;
  readonly generation: number;
  readonly generation_place: number;
  readonly context_window: number | null;
}

export async function readTurns(db: SqliteDatabase, params: ReadTurnsParams): Promise<SessionTurns | null> {
  return db.read(() => {
    const held = findHeld(db, params);
    if (held === undefined) return null;
    const { generation, context_window: contextWindow } = held;
    const stored = params.limit === 0 ? [] : turnsBefore(db, held, params.limit);
    return { generation, contextWindow, ...toTurns(stored) };
  });
}

function findHeld(db: SqliteDatabase, { seq, token }: ReadTurnsParams): HeldSession | undefined {
  return db
    .prepare<HeldSession>(
      `select t.session, t.agent, t.place, s.generation, s.generation_place, s.context_window
         from lease l join task t on t.seq = l.task_seq join session s on s.id = t.session
        where l.task_seq = ? and l.token = ? and t.place > s.generation_place`,
    )
    .get(seq, token);
}

/** Selects the turns without reading their texts, which may be long and lie on pages of their own. */
function turnsBefore(db: SqliteDatabase, held: HeldSession, limit: number): StoredTurn[] {
  return db
    .prepare<StoredTurn>(
      `with recent as (
         select seq, place, agent, resting_state from task indexed by task_by_session
          where session = @session and session is not null order by seq desc limit +@lookedAt),
       chosen as (
         select seq, place from recent
          where resting_state = 'done' and agent = @agent and place > @since and place < @before
          order by place desc limit +@limit),
       sized as (
         select c.seq, c.place, sum(octet_length(t.spec) + octet_length(t.result)) over (order by c.place desc) as bytes
           from chosen c join task t on t.seq = c.seq)
       select t.id, t.spec, t.result from sized z join task t on t.seq = z.seq
        where z.bytes <= @bytesMax order by z.place`,
    )
    .all({
      session: held.session,
      agent: held.agent,
      since: held.generation_place,
      before: held.place,
      limit,
      lookedAt: TURNS_LOOKED_AT,
      bytesMax: TURNS_BYTES_MAX,
    });
}

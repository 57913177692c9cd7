import { TAKEN_AT_ONCE, type TakenMessage } from "../../../model/session.ts";
import type { TakeMessagesParams } from "../../storage.ts";
import { type StoredMessage, toTakenMessage } from "../../stored-message.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** Gives messages in mode `steer` to the attempt that runs in their session. */
export async function takeMessages(
  db: SqliteDatabase,
  params: TakeMessagesParams,
): Promise<readonly TakenMessage[]> {
  // Attempts ask often, and mostly for nothing.
  const offered = await db.read(() => findMessages(db, params, db.clock.now()));
  if (offered.length === 0) return [];
  return db.transactDurably((tx) => {
    const messages = findMessages(db, params, tx.now);
    const take = tx.prepare("update task set taken_by = ? where seq = ?");
    for (const { seq } of messages) take.run(params.seq, seq);
    return messages.map(toTakenMessage);
  });
}

interface MessageRow extends StoredMessage {
  readonly seq: number;
}

/** Those that the attempt has taken, and those that it may take. None if it no longer holds its task. */
function findMessages(
  db: SqliteDatabase,
  { seq, token, after }: TakeMessagesParams,
  now: number,
): MessageRow[] {
  return db
    .prepare<MessageRow>(
      `with chosen as (
         select m.seq, m.place
           from lease l join task k on k.seq = l.task_seq join task m indexed by task_steered on m.session = k.session
          where l.task_seq = @seq and l.token = @token and m.steer_until is not null and m.completed_at is null
            and m.place > @after and m.parked = 'session'
            and (m.taken_by = @seq or (m.taken_by is null and m.steer_until > @now and m.agent = k.agent))
          order by m.place limit ${TAKEN_AT_ONCE.messages}),
       sized as (
         select c.seq, c.place, sum(octet_length(t.spec)) over (order by c.place) as bytes,
                row_number() over (order by c.place) as n
           from chosen c join task t on t.seq = c.seq)
       select t.seq, t.id, t.place, t.spec
         from sized z join task t on t.seq = z.seq
        where z.n = 1 or z.bytes <= ${TAKEN_AT_ONCE.bytes} order by z.place`,
    )
    .all({ seq, token, after, now });
}

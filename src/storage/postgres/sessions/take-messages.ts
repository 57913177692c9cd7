import { TAKEN_AT_ONCE, type TakenMessage } from "../../../model/session.ts";
import type { TakeMessagesParams } from "../../storage.ts";
import { type StoredMessage, toTakenMessage } from "../../stored-message.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";

/** Gives messages in mode `steer` to the attempt that runs in their session. */
export async function takeMessages(
  db: PostgresDatabase,
  { seq, token, after }: TakeMessagesParams,
): Promise<readonly TakenMessage[]> {
  // Attempts ask often, and mostly for nothing: only what may be taken needs the write lock.
  const [offered] = await db.read({
    name: "offered_messages",
    text: OFFERED_MESSAGES,
    values: [seq, token, after],
  });
  if (offered === undefined) return [];
  const rows = await db.write<StoredMessage>({
    name: "take_messages",
    text: "select * from take_messages($1, $2, $3, $4)",
    values: [seq, token, after],
  });
  return rows.map(toTakenMessage);
}

/** Whether a message is offered is decided later, by the time of the write. */
const OFFERED_MESSAGES = `
  select 1 from lease l
   cross join lateral (select session from task where seq = l.task_seq offset 0) k
   cross join lateral (select place, taken_by from turn where session = k.session and steer_until is not null offset 0) u
   where l.task_seq = $1 and l.token = $2 and u.place > $3 and (u.taken_by is null or u.taken_by = $1) limit 1`;

export const TAKE_MESSAGES_FUNCTIONS = readSql(new URL("./take-messages.sql", import.meta.url), {
  MESSAGES_MAX: TAKEN_AT_ONCE.messages,
  BYTES_MAX: TAKEN_AT_ONCE.bytes,
});

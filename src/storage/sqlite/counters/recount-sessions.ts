import type { SqliteDatabase } from "../connection/database.ts";
import type { RecountSlices } from "./recount-slices.ts";

export async function checkSessions(recount: RecountSlices): Promise<void> {
  const { counts } = recount.census;
  await recount.eachPage<{ id: number; active: number; queued: number; messages: number }>(
    recount.counters,
    {
      sql: "select id, active, queued, messages from session where id > ? order by id limit +?",
      first: [-1],
      keyOf: ({ id }) => [id],
    },
    (page) => {
      const held = heldBySession(recount.db);
      for (const { id, active, queued, messages } of page) {
        const counted = counts.ofSession(id);
        const own = held.get(id) ?? NOTHING_HELD;
        recount.compare(`session ${id} active`, active, counted.inside);
        recount.compare(`session ${id} queued`, queued, counted.open - own.tasks);
        recount.compare(`session ${id} messages`, messages, counted.messages - own.messages);
      }
    },
  );
}

/** Open tasks of a session that attempts hold, and how many of them are messages. */
interface Held {
  readonly tasks: number;
  readonly messages: number;
}

const NOTHING_HELD: Held = { tasks: 0, messages: 0 };

function heldBySession(db: SqliteDatabase): Map<number, Held> {
  const rows = db
    .prepare<Held & { session: number }>(
      `select t.session, count(*) as tasks, sum(t.origin = 'message') as messages
         from lease l join task t on t.seq = l.task_seq
        where t.session is not null and t.completed_at is null group by t.session`,
    )
    .all();
  return new Map(rows.map((row) => [row.session, row]));
}

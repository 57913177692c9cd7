import type { EventType } from "../../model/event.ts";
import type { EventData } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

/** Adds an event to the log, inside the transaction of the change it tells of. `seq`: a number taken before. */
export function writeEvent(
  db: SqliteDatabase,
  event: {
    type: EventType;
    at: number;
    tenant: string;
    taskSeq: number;
    data: EventData | null;
    seq?: number;
  },
): void {
  db.prepare("insert into event (seq, type, at, tenant, task_seq, data) values (?, ?, ?, ?, ?, ?)").run(
    event.seq ?? db.nextEventSeq(),
    event.type,
    event.at,
    event.tenant,
    event.taskSeq,
    event.data === null ? null : JSON.stringify(event.data),
  );
}

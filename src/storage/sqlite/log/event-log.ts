import type { EventType } from "../../../model/event.ts";
import type { EventData } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** Consecutive events that differ only in their task. */
interface EventGroup {
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly data: string | null;
  readonly taskSeqs: number[];
  lastSeq: number;
}

/** The events of one transaction. Consecutive events that differ only in their task share a row. */
export class EventLog {
  readonly #db: SqliteDatabase;
  readonly #groups: EventGroup[] = [];

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** Adds an event and returns its number. `seq`: a number that the caller has reserved; numbers must be in order. */
  add(event: {
    type: EventType;
    at: number;
    tenant: string;
    taskSeq: number;
    data: EventData | null;
    seq?: number;
  }): number {
    const { type, at, tenant, taskSeq } = event;
    const seq = event.seq ?? this.#db.nextEventSeq();
    const data = event.data === null ? null : JSON.stringify(event.data);
    const last = this.#groups.at(-1);
    const isSame =
      last?.lastSeq === seq - 1 &&
      last.type === type &&
      last.at === at &&
      last.data === data &&
      last.tenant === tenant;
    if (isSame) {
      last.lastSeq = seq;
      last.taskSeqs.push(taskSeq);
    } else {
      this.#groups.push({ type, at, tenant, data, taskSeqs: [taskSeq], lastSeq: seq });
    }
    return seq;
  }

  save(): void {
    const insert = this.#db.prepare(
      "insert into event (last_seq, count, type, at, tenant, task_seqs, data) values (?, ?, ?, ?, ?, ?, ?)",
    );
    for (const { lastSeq, taskSeqs, type, at, tenant, data } of this.#groups) {
      insert.run(lastSeq, taskSeqs.length, type, at, tenant, JSON.stringify(taskSeqs), data);
    }
  }
}

import { TaskCounts, type TaskGroup } from "../../task-counts.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** The columns that counters depend on. */
const COLUMNS = [
  "line",
  "tenant",
  "resting_state",
  "completed_at",
  "parked",
  "origin",
  "batch",
  "session",
  "in_session",
] as const;

interface GroupRow {
  readonly line: number;
  readonly tenant: string;
  readonly state: string;
  readonly ended: 0 | 1;
  readonly parked: 0 | 1;
  readonly origin: string;
  readonly batch: string | null;
  readonly session: number | null;
  readonly in_session: 0 | 1;
  readonly tasks: number;
  readonly last_seq: number;
}

const GROUP = `
  line, tenant, resting_state as state, completed_at is not null as ended, parked is not null as parked, origin,
  iif(completed_at is null, batch, null) as batch,
  iif(completed_at is null or in_session = 1, session, null) as session, in_session,
  count(*) as tasks, max(seq) as last_seq`;
const BY = "group by 1, 2, 3, 4, 5, 6, 7, 8, 9";

/**
 * Counts the rows of `task` in slices. The counts are correct for all rows up to `upTo` after each `advance`: while the census
 * is open, a trigger stores each row as it was before a change, and `advance` subtracts the old row and adds the new one. Only
 * one process writes to the file and nothing else runs within a slice, so that no transaction has to stay open in between.
 */
export class TaskCensus {
  readonly counts = new TaskCounts();
  readonly #db: SqliteDatabase;
  #upTo = 0;

  constructor(db: SqliteDatabase) {
    this.#db = db;
    const kept = COLUMNS.join(", ");
    const old = COLUMNS.map((column) => `old.${column}`).join(", ");
    db.prepare(`create temp table if not exists changed_task (seq integer primary key, ${kept})`).run();
    db.prepare("delete from changed_task").run();
    for (const [name, event] of Object.entries(TRIGGERS)) {
      db.prepare(
        `create temp trigger ${name} before ${event} on main.task begin
           insert or ignore into changed_task (seq, ${kept}) values (old.seq, ${old});
         end`,
      ).run();
    }
  }

  /** The task up to which all are counted. */
  get upTo(): number {
    return this.#upTo;
  }

  /** Corrects the counts for rows that changed, and counts up to `limit` more tasks. Returns how many more it counted. */
  advance(limit: number): number {
    this.#takeBackChanged();
    const groups = this.#db
      .prepare<GroupRow>(
        `select ${GROUP} from (select * from task where seq > ? order by seq limit +?) ${BY}`,
      )
      .all(this.#upTo, limit);
    let counted = 0;
    for (const group of groups) {
      this.counts.add(toGroup(group, 1));
      counted += group.tasks;
      this.#upTo = Math.max(this.#upTo, group.last_seq);
    }
    return counted;
  }

  close(): void {
    for (const name of Object.keys(TRIGGERS)) this.#db.prepare(`drop trigger if exists temp.${name}`).run();
    this.#db.prepare("delete from changed_task").run();
  }

  #takeBackChanged(): void {
    const changed = "select seq from changed_task where seq <= ?";
    const before = this.#db
      .prepare<GroupRow>(`select ${GROUP} from changed_task where seq <= ? ${BY}`)
      .all(this.#upTo);
    const after = this.#db
      .prepare<GroupRow>(`select ${GROUP} from task where seq in (${changed}) ${BY}`)
      .all(this.#upTo);
    for (const group of before) this.counts.add(toGroup(group, -1));
    for (const group of after) this.counts.add(toGroup(group, 1));
    this.#db.prepare("delete from changed_task").run();
  }
}

const TRIGGERS = {
  census_of_changed: `update of ${COLUMNS.join(", ")}`,
  census_of_deleted: "delete",
} as const;

function toGroup(row: GroupRow, sign: 1 | -1): TaskGroup {
  return {
    agentQueue: row.line,
    tenant: row.tenant,
    state: row.state,
    ended: row.ended === 1,
    parked: row.parked === 1,
    exempt: row.origin !== "task",
    isMessage: row.origin === "message",
    batch: row.batch,
    session: row.session,
    inSession: row.in_session === 1,
    tasks: sign * row.tasks,
  };
}

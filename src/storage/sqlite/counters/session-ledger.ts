import type { DropPolicy, SessionMode } from "../../../model/session.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** A row of `session`, being changed. */
export interface SessionRow {
  readonly id: number;
  readonly tenant: string;
  readonly key: string;
  agent: string | null;
  lane: string | null;
  mode: SessionMode | null;
  cap: number | null;
  drop_policy: DropPolicy | null;
  debounce_ms: number | null;
  max_concurrent: number | null;
  default_max: number;
  tokens: number | null;
  context_window: number | null;
  generation: number;
  generation_place: number;
  pinned: 0 | 1;
  last_place: number;
  cutoff: number;
  debounce_seq: number | null;
  debounce_since: number | null;
  debounce_mode: SessionMode | null;
  active: number;
  queued: number;
  messages: number;
}

/** The sessions whose tasks one transaction moves: read when first needed, written once at its end. */
export class SessionLedger {
  readonly #db: SqliteDatabase;
  readonly #rows = new Map<number, SessionRow>();
  readonly #asRead = new Map<SessionRow, SessionRow>();
  /** Sessions in which an attempt ended together with its task. */
  readonly withEnds = new Set<number>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  get(id: number): SessionRow {
    const known = this.#rows.get(id);
    if (known !== undefined) return known;
    const row = this.#db.prepare<SessionRow>("select * from session where id = ?").get(id);
    if (row === undefined) throw new Error(`session ${id} is gone`);
    return this.#adopt(row);
  }

  /** The session of this name; undefined when there is none. */
  find(tenant: string, key: string): SessionRow | undefined {
    const found = this.#db
      .prepare<SessionRow>("select * from session where tenant = ? and key = ?")
      .get(tenant, key);
    return found === undefined ? undefined : this.#adopt(found);
  }

  /** The session of this name; created with this agent if it does not exist. */
  ensure(tenant: string, key: string, defaultMax: number, agent: string | null = null): SessionRow {
    const known = this.find(tenant, key);
    if (known !== undefined) {
      known.default_max = defaultMax;
      return known;
    }
    const made = this.#db
      .prepare<SessionRow>(
        "insert into session (tenant, key, default_max, agent) values (?, ?, ?, ?) returning *",
      )
      .get(tenant, key, defaultMax, agent) as SessionRow;
    return this.#adopt(made);
  }

  /** All sessions that this transaction has read. */
  touched(): Iterable<SessionRow> {
    return this.#rows.values();
  }

  save(): void {
    const count = this.#db.prepare(
      "update session set last_place = ?, active = ?, queued = ?, messages = ? where id = ?",
    );
    for (const row of this.#rows.values()) {
      if (isSetAnew(row, this.#asRead.get(row))) this.#saveWhole(row);
      else count.run(row.last_place, row.active, row.queued, row.messages, row.id);
    }
  }

  /** Adds a row that a query read, unless this transaction has it already. */
  #adopt(row: SessionRow): SessionRow {
    const known = this.#rows.get(row.id);
    if (known !== undefined) return known;
    this.#rows.set(row.id, row);
    this.#asRead.set(row, { ...row });
    return row;
  }

  #saveWhole(row: SessionRow): void {
    this.#db
      .prepare(
        `update session set agent = @agent, lane = @lane, mode = @mode, cap = @cap, drop_policy = @drop_policy,
                            debounce_ms = @debounce_ms, max_concurrent = @max_concurrent, default_max = @default_max,
                            tokens = @tokens, context_window = @context_window, generation = @generation, generation_place = @generation_place, pinned = @pinned,
                            last_place = @last_place, cutoff = @cutoff, debounce_seq = @debounce_seq,
                            debounce_since = @debounce_since, debounce_mode = @debounce_mode, active = @active,
                            queued = @queued, messages = @messages
          where id = @id`,
      )
      .run(row);
  }
}

/** Whether more has changed than the counters, which every task changes. */
function isSetAnew(row: SessionRow, asRead: SessionRow | undefined): boolean {
  return SETTINGS.some((column) => row[column] !== asRead?.[column]);
}

const SETTINGS = [
  "agent",
  "lane",
  "mode",
  "cap",
  "drop_policy",
  "debounce_ms",
  "max_concurrent",
  "default_max",
  "tokens",
  "context_window",
  "generation",
  "pinned",
  "cutoff",
  "debounce_seq",
  "debounce_since",
  "debounce_mode",
] as const satisfies (keyof SessionRow)[];

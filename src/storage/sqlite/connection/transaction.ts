import type Sqlite from "better-sqlite3";
import type { StorageSignal } from "../../storage.ts";
import { Ledger } from "../counters/ledger.ts";
import { preemptTasks } from "../tasks/steps/preempt-tasks.ts";
import { settleMoves } from "../tasks/steps/settle-moves.ts";
import type { SqliteDatabase } from "./database.ts";

type FencedSignal = Extract<StorageSignal, { kind: "fenced" }>;
type Hint = Exclude<StorageSignal["kind"], "fenced" | "workers">;

/**
 * One write transaction: its time, the counters and events it changes, and the signals it sends after the commit. Operations
 * open it by `db.transact`; steps run inside it and take it as their first parameter.
 */
export class Transaction {
  readonly db: SqliteDatabase;
  readonly now: number;
  /** The listeners get these after the commit. */
  readonly signals: StorageSignal[] = [];
  #ledger: Ledger | null = null;
  #isSettled = false;
  #hasPreempted = false;
  #hasSaved = false;

  constructor(db: SqliteDatabase, now: number) {
    this.db = db;
    this.now = now;
  }

  /** The counters and events of this transaction, until the next `save`. */
  get ledger(): Ledger {
    this.#ledger ??= this.#openLedger();
    return this.#ledger;
  }

  prepare<Row = unknown>(sql: string): Sqlite.Statement<unknown[], Row> {
    return this.db.prepare<Row>(sql);
  }

  signal(...kinds: Hint[]): void {
    for (const kind of kinds) this.signals.push({ kind });
  }

  /** The attempts with these tokens lost their lease. */
  fence(tokens: readonly number[], reason: FencedSignal["reason"]): void {
    this.signals.push({ kind: "fenced", tokens, reason });
  }

  /** This worker was registered again, drained or removed. */
  changedWorker(id: string): void {
    this.signals.push({ kind: "workers", ids: [id] });
  }

  /** Does the deferred work of the ledger; see `settleMoves`. */
  settle(limit?: number): number {
    this.#isSettled = true;
    return settleMoves(this, limit);
  }

  /** Pre-empts tasks for critical ones, after the deferred work is done; see `preemptTasks`. */
  preempt(): void {
    if (!this.#isSettled) this.settle();
    this.#hasPreempted = true;
    preemptTasks(this);
  }

  /**
   * Ends the work on the ledger and writes it: settles and pre-empts, if the operation has not done so already. `transact` calls
   * this before it commits. An operation calls it to read from the tables what it wrote; it gets a new ledger afterwards.
   */
  save(): void {
    if (this.#ledger === null) return;
    if (!this.#hasPreempted) this.preempt();
    this.#ledger.save();
    this.#hasSaved = true;
    this.discard();
  }

  /** Drops what the ledger has not written. */
  discard(): void {
    this.#ledger = null;
    this.#isSettled = false;
    this.#hasPreempted = false;
  }

  #openLedger(): Ledger {
    // The cache has rows as last committed, without what an earlier ledger of this transaction wrote.
    if (this.#hasSaved) this.db.agentQueues.clear();
    return new Ledger(this.db);
  }
}

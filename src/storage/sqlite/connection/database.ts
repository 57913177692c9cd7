import { dirname, resolve } from "node:path";
import Sqlite from "better-sqlite3";
import type { Clock } from "../../../model/clock.ts";
import { RotaError } from "../../../model/errors.ts";
import { readMigrations } from "../../migrations.ts";
import { EVENT_NUMBERS_PER_MS, type StorageSignal } from "../../storage.ts";
import { AgentQueueCache } from "../counters/agent-queue-cache.ts";
import { AbilityCache } from "../counters/standing.ts";
import { LeaseCache } from "../tasks/lease-cache.ts";
import { createReadySet } from "../tasks/ready-set.ts";
import { ENTER_EVERY } from "../tasks/tasks-of-agent-queue.ts";
import { migrate } from "./migrate.ts";
import { createPrivate, looseFiles } from "./private-files.ts";
import { lockForThisProcess } from "./process-lock.ts";
import { realPath } from "./real-path.ts";
import { Transaction } from "./transaction.ts";
import { type LogFlush, LostPagesError, WalSync } from "./wal-sync.ts";

/** Pages the write-ahead log may grow to before a commit writes them back (16 MiB): fewer but longer pauses. */
const CHECKPOINT_PAGES = 4000;
const CACHE_KIB = 64 * 1024;
/**
 * How long a write waits for another program that has locked the file, such as a backup. It blocks the only thread, and so
 * everything else. For a longer wait the caller retries.
 */
const BUSY_MS = 100;

/** The shortest interval between attempts to rewrite the log after a failed flush. */
const WRITE_ANEW_MS = 500;
/** What `check` writes after a write has failed: more than most transactions do. */
const CHECK_BYTES = 256 * 1024;

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  readonly clock: Clock;
  /** How many tasks are inserted into `task_of_line` at a time. */
  readonly enterEvery?: number;
  /** Called with the database files that other users of this machine may read or write. */
  readonly onLooseFiles?: (files: readonly string[]) => void;
  /** For tests: the bytes of an empty in-memory database. Creating one takes 45 ms. */
  readonly image?: Buffer;
  /** For tests that simulate a power cut. */
  readonly flushWal?: LogFlush;
}

/** The connection: transactions, prepared statements, sequence numbers, durability. The operations are in files of their own. */
export class SqliteDatabase {
  readonly clock: Clock;
  readonly #db: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();
  readonly #listeners = new Set<(signal: StorageSignal) => void>();
  readonly #begin: Sqlite.Statement;
  readonly #commit: Sqlite.Statement;
  readonly #rollback: Sqlite.Statement;
  /** Rows that earlier transactions read and wrote through their ledgers. */
  readonly agentQueues = new AgentQueueCache();
  /** What nodes can execute: the part that every insert needs. */
  readonly abilities = new AbilityCache();
  /** Leases that claims wrote. */
  readonly leases = new LeaseCache();
  /** Whether tasks of several agent queues may want the same concurrency key. Usually not, which saves the query. */
  mayContest = true;
  readonly enterEvery: number;
  /** `task_of_line` is complete up to this task. */
  enteredUpTo: number;
  readonly #lock: { release(): void } | null;
  readonly #sync: WalSync | null;
  #lastEventSeq: number;
  #lastTaskSeq: number;
  #closing: Promise<void> | null = null;
  /** A write failed because the storage was unavailable, and no `check` has succeeded since. */
  #broken = false;
  #wroteAnewAt = Number.NEGATIVE_INFINITY;

  constructor(options: SqliteOptions) {
    const inMemory = options.path === ":memory:";
    this.clock = options.clock;
    this.enterEvery = options.enterEvery ?? ENTER_EVERY;
    let lock: { release(): void } | null = null;
    let db: Sqlite.Database | null = null;
    try {
      const path = inMemory ? options.path : realPath(options.path);
      lock = inMemory ? null : lockForThisProcess(path);
      if (!inMemory) createPrivate(path);
      db = new Sqlite(options.image ?? path, { timeout: BUSY_MS });
      this.#db = db;
      this.#db.pragma("journal_mode = wal");
      this.#db.pragma("synchronous = normal");
      this.#db.pragma(`cache_size = -${CACHE_KIB}`);
      this.#db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      this.#db.pragma("temp_store = memory");
      migrate(this.#db, readMigrations(new URL("../migrations/", import.meta.url)));
      createReadySet(this.#db);
      this.#db.exec("update node set past = 1 where past = 0");
      // A write of any kind makes sure that the log file exists before it is opened for flushing.
      this.#db.pragma("user_version = 1");
      this.#sync = inMemory ? null : new WalSync(path, options.clock, options.flushWal);
      this.#begin = this.#db.prepare("begin immediate");
      this.#commit = this.#db.prepare("commit");
      this.#rollback = this.#db.prepare("rollback");
      this.#lastEventSeq = Math.max(
        this.#highWater("event", "last_seq"),
        this.#beyondLastEvent(),
        this.#lastToken(),
      );
      this.#lastTaskSeq = this.#highWater("task", "seq");
      this.enteredUpTo = this.#entered();
    } catch (error) {
      db?.close();
      lock?.release();
      throw cannotOpen(options.path, error);
    }
    this.#lock = lock;
    const loose = inMemory ? [] : looseFiles(realPath(options.path));
    if (loose.length > 0) options.onLooseFiles?.(loose);
  }

  /** How many tasks are not in `task_of_line` yet. */
  get tasksNotEntered(): number {
    return this.#lastTaskSeq - this.enteredUpTo;
  }

  get durableStore(): boolean {
    return this.#sync !== null;
  }

  now(): number {
    this.#assertOpen();
    return this.clock.now();
  }

  /**
   * Writes something and waits until it is on the disk: reads alone still work on a full or broken disk. After a failed write
   * it writes as much as a large task takes, since a nearly full disk may still accept a little.
   */
  async check(): Promise<void> {
    this.#assertOpen();
    if (this.#sync?.failure) await this.#writeAnew(this.#sync);
    if (this.#broken) this.#writeMuch();
    else this.#writeLittle();
    await this.durable();
    this.#broken = false;
  }

  /** A new value each time: SQLite writes nothing if nothing changes. */
  #writeLittle(): void {
    this.transact(() =>
      this.prepare(
        `insert into high_water (name, value) values ('write_check', 1)
         on conflict (name) do update set value = value + 1`,
      ).run(),
    );
  }

  #writeMuch(): void {
    this.transact(() => {
      this.#db.exec("drop table if exists write_check; create table write_check (bytes blob) strict");
      this.#db.prepare("insert into write_check values (zeroblob(?))").run(CHECK_BYTES);
    });
    this.transact(() => this.#db.exec("drop table write_check"));
  }

  /** Meanwhile nothing is committed: `transact` throws. */
  async #writeAnew(sync: WalSync): Promise<void> {
    try {
      await sync.writeAnew(() => this.#db.pragma("wal_checkpoint(truncate)"));
    } catch (error) {
      throw notDurable(error);
    }
  }

  /** After a failed flush, writes are refused until the log is rewritten. This starts the rewrite. */
  #assertDurable(): void {
    if (!this.#sync?.failure) return;
    const { failure } = this.#sync;
    this.#writeAnewSoon(this.#sync);
    throw notDurable(failure);
  }

  /** For callers that do not wait for the rewrite. It blocks this thread for a while, so not every call starts one. */
  #writeAnewSoon(sync: WalSync): void {
    const now = this.clock.monotonic();
    if (now - this.#wroteAnewAt < WRITE_ANEW_MS) return;
    this.#wroteAnewAt = now;
    this.#writeAnew(sync).catch(() => undefined);
  }

  /**
   * Prepares a statement once. Rows are returned as objects, integers as numbers (all of ours fit). Write a limit as `limit
   * +?`: SQLite plans by the value of a bare `limit ?`, and so plans the statement again for every new value, which takes four
   * times as long as reading a few rows.
   */
  prepare<Row = unknown>(sql: string): Sqlite.Statement<unknown[], Row> {
    this.#assertOpen();
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement as Sqlite.Statement<unknown[], Row>;
  }

  /**
   * Runs `work` as one transaction, all or nothing. At its end it saves the ledger; after the commit it passes the signals to the
   * listeners.
   */
  transact<Result>(work: (tx: Transaction) => Result): Result {
    this.#assertOpen();
    this.#assertDurable();
    let tx: Transaction;
    let result: Result;
    try {
      this.#begin.run();
      tx = new Transaction(this, this.clock.now());
      result = work(tx);
      tx.save();
      this.#commit.run();
    } catch (error) {
      this.agentQueues.clear();
      this.leases.clear();
      this.abilities.clear();
      this.mayContest = true;
      if (this.#db.inTransaction) this.#rollback.run();
      throw this.#failed(error);
    }
    this.agentQueues.committed();
    this.#sync?.committed();
    for (const listener of this.#listeners) for (const signal of tx.signals) listener(signal);
    return result;
  }

  /** Runs one statement, a transaction by itself. The statement must not change anything that a ledger or cache holds. */
  write<Result>(statement: () => Result): Result {
    this.#assertOpen();
    this.#assertDurable();
    try {
      const result = statement();
      this.#sync?.committed();
      return result;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(error: unknown): unknown {
    const thrown = toRotaError(error);
    this.#broken ||= thrown instanceof RotaError && thrown.cause === error;
    if (isFlushError(error)) this.#sync?.failed(error);
    return thrown;
  }

  /** The same as `transact`, and resolves once the transaction survives a power cut. */
  async transactDurably<Result>(work: (tx: Transaction) => Result): Promise<Result> {
    const result = this.transact(work);
    await this.durable();
    return result;
  }

  /**
   * The same as `transact`, but SQLite overwrites what it deletes. That costs writes. Content that an earlier change left in a
   * free part of a page stays there until `vacuum`: see docs/tenants.md.
   */
  erase<Result>(work: (tx: Transaction) => Result): Result {
    this.#assertOpen();
    this.#db.pragma("secure_delete = on");
    try {
      return this.transact(work);
    } finally {
      this.#db.pragma("secure_delete = off");
    }
  }

  /** Writes the write-ahead log back into the database file and truncates it, since it still holds earlier versions of pages. */
  emptyLog(): void {
    try {
      this.#db.pragma("wal_checkpoint(truncate)");
    } catch (error) {
      throw toRotaError(error);
    }
  }

  /** Returns what `look` reads once it survives a power cut, so that no reader sees something that is lost later. */
  async read<Result>(look: () => Result): Promise<Result> {
    const seen = look();
    await this.durable();
    return seen;
  }

  /** Resolves once everything committed so far survives a power cut. `hasSingleWaiter`: see `WalSync`. */
  async durable(waiting: { readonly hasSingleWaiter?: boolean } = {}): Promise<void> {
    this.#assertOpen();
    if (this.#sync === null) return;
    try {
      await this.#sync.durable(waiting);
    } catch (error) {
      this.#broken = true;
      this.#writeAnewSoon(this.#sync);
      throw notDurable(error);
    }
  }

  get lastEventSeq(): number {
    return this.#lastEventSeq;
  }

  nextEventSeq(): number {
    this.#lastEventSeq += 1;
    return this.#lastEventSeq;
  }

  get lastTaskSeq(): number {
    return this.#lastTaskSeq;
  }

  nextTaskSeq(): number {
    this.#lastTaskSeq += 1;
    return this.#lastTaskSeq;
  }

  subscribe(listener: (signal: StorageSignal) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    await this.#sync?.close();
    this.#db.close();
    this.#lock?.release();
  }

  /** A restored database must not reuse event numbers that readers have seen: see `EVENT_NUMBERS_PER_MS`. */
  #beyondLastEvent(): number {
    const newest = this.#db
      .prepare<[], { seq: number; at: number }>(
        "select last_seq as seq, at from event order by last_seq desc limit 1",
      )
      .get();
    if (newest === undefined) return 0;
    return newest.seq + Math.max(this.clock.now() - newest.at, 0) * EVENT_NUMBERS_PER_MS;
  }

  /** The token of an assigned attempt may be above the number of any event. */
  #lastToken(): number {
    const row = this.#db.prepare<[], { token: number | null }>("select max(token) as token from lease").get();
    return row?.token ?? 0;
  }

  #entered(): number {
    const row = this.#db
      .prepare<[], { value: number }>("select value from high_water where name = 'task_of_line'")
      .get();
    return row?.value ?? 0;
  }

  #highWater(name: "event" | "task", column: "last_seq" | "seq"): number {
    const row = this.#db
      .prepare<[string], { value: number }>(
        `select max(coalesce((select max(${column}) from ${name}), 0),
                    coalesce((select value from high_water where name = ?), 0)) as value`,
      )
      .get(name);
    return row?.value ?? 0;
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new RotaError("storage_unavailable", "the storage is closed");
  }
}

function cannotOpen(path: string, error: unknown): unknown {
  if (error instanceof RotaError) return error;
  const { code = "", message, path: missing } = error as NodeJS.ErrnoException;
  return new RotaError(
    "storage_unavailable",
    `cannot open the database ${path}: ${reasonFor(code, path, missing) ?? message}`,
    {
      cause: error,
    },
  );
}

/** `missing`: the path that was not found; a link may have led to it. */
function reasonFor(code: string, path: string, missing?: string): string | undefined {
  const folder = dirname(path);
  switch (code) {
    case "ENOENT":
      return `there is no folder ${missing === undefined || missing === resolve(folder) ? folder : missing}`;
    case "EACCES":
    case "EROFS":
    case "SQLITE_CANTOPEN":
      return `files in ${folder === "." ? "this folder" : folder} cannot be written, or it is not a file`;
    case "SQLITE_READONLY":
      return "it cannot be written";
    case "SQLITE_NOTADB":
      return "it is not a SQLite database";
    default:
      return undefined;
  }
}

function notDurable(error: unknown): RotaError {
  const { message } = error as Error;
  const isOver = error instanceof LostPagesError;
  const next = isOver ? "" : "; Rota accepts nothing until it has rewritten its log";
  return new RotaError("storage_unavailable", `SQLite: fsync failed (${message})${next}`, {
    cause: error,
  });
}

function isFlushError(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && /^SQLITE_IOERR_(DIR_)?FSYNC$/.test(error.code);
}

/** Prefixes of the codes for failures of the file or the disk: the caller may retry. */
const AWAY_CODES = [
  "SQLITE_BUSY",
  "SQLITE_IOERR",
  "SQLITE_FULL",
  "SQLITE_CANTOPEN",
  "SQLITE_READONLY",
  "SQLITE_NOTADB",
];

/**
 * An unavailable database becomes `storage_unavailable`, which callers retry. Any other error is a bug and is rethrown as it
 * is.
 */
function toRotaError(error: unknown): unknown {
  const away = error instanceof Sqlite.SqliteError && AWAY_CODES.some((code) => error.code.startsWith(code));
  return away ? new RotaError("storage_unavailable", `SQLite: ${error.message}`, { cause: error }) : error;
}

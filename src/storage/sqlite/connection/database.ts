import { dirname, resolve } from "node:path";
import Sqlite from "better-sqlite3";
import type { Clock } from "../../../model/clock.ts";
import { RotaError } from "../../../model/errors.ts";
import { readMigrations } from "../../migrations.ts";
import { EVENT_NUMBERS_PER_MS, type StorageSignal } from "../../storage.ts";
import { LineCache } from "../counters/line-cache.ts";
import { AbilityCache } from "../counters/standing.ts";
import { LeaseCache } from "../tasks/lease-cache.ts";
import { createReadySet } from "../tasks/ready-set.ts";
import { ENTER_EVERY } from "../tasks/task-of-line.ts";
import { migrate } from "./migrate.ts";
import { createPrivate, looseFiles } from "./private-files.ts";
import { lockForThisProcess } from "./process-lock.ts";
import { realPath } from "./real-path.ts";
import { type FlushFile, LostPagesError, WalSync } from "./wal-sync.ts";

/** Pages the write-ahead log may grow to before a commit writes them back (16 MiB): few, larger pauses. */
const CHECKPOINT_PAGES = 4000;
const CACHE_KIB = 64 * 1024;
/**
 * How long a write waits for another program that has locked the file, a backup perhaps. It waits in the one thread there
 * is, so that everything else does, too: longer waits are for whoever called, who tries again.
 */
const BUSY_MS = 100;

/** How often it is tried at most to write the log anew after a flush that failed. */
const WRITE_ANEW_MS = 500;
/** What `check` writes after a write has failed: more than most transactions do. */
const CHECK_BYTES = 256 * 1024;

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  readonly clock: Clock;
  /** How many tasks are entered into `task_of_line` at a time. */
  readonly enterEvery?: number;
  /** Called with those of its files that other users of this machine may read or write. */
  readonly onLooseFiles?: (files: readonly string[]) => void;
  /** For tests: the bytes of an empty database to begin with in memory. To make one anew takes 45 ms. */
  readonly image?: Buffer;
  /** For tests that simulate a power cut. */
  readonly flushWal?: FlushFile;
}

/** The connection: transactions, prepared statements, numbers, durability. The operations are in files of their own. */
export class SqliteDatabase {
  readonly clock: Clock;
  readonly #db: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();
  readonly #listeners = new Set<(signal: StorageSignal) => void>();
  readonly #begin: Sqlite.Statement;
  readonly #commit: Sqlite.Statement;
  readonly #rollback: Sqlite.Statement;
  /** What the ledgers of transactions have read and written. */
  readonly lines = new LineCache();
  /** What nodes can execute, as far as every task asks for it. */
  readonly abilities = new AbilityCache();
  /** What claims have written. */
  readonly leases = new LeaseCache();
  /** Whether there may be a concurrency key that tasks of several lines want: most often there is none to look for. */
  mayContest = true;
  readonly enterEvery: number;
  /** Up to which task `task_of_line` is complete. */
  enteredUpTo: number;
  readonly #lock: { release(): void } | null;
  readonly #sync: WalSync | null;
  #lastEventSeq: number;
  #lastTaskSeq: number;
  #signals: StorageSignal[] = [];
  #closing: Promise<void> | null = null;
  /** A write failed because the storage was away, and no `check` has found since that writing works again. */
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
      this.#sync = inMemory ? null : new WalSync(path, options.flushWal);
      this.#begin = this.#db.prepare("begin immediate");
      this.#commit = this.#db.prepare("commit");
      this.#rollback = this.#db.prepare("rollback");
      this.#lastEventSeq = Math.max(this.#highWater("event", "last_seq"), this.#beyondLastEvent());
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

  /** How many tasks `task_of_line` does not have yet. */
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
   * Writes something, and waits until it is on the disk: a disk that is full or broken can still be read. After a write that
   * failed it is as much as a large task takes, since there may be room for little.
   */
  async check(): Promise<void> {
    this.#assertOpen();
    if (this.#sync?.failure) await this.#writeAnew(this.#sync);
    if (this.#broken) this.#writeMuch();
    else this.#writeLittle();
    await this.durable();
    this.#broken = false;
  }

  /** Another value each time: SQLite writes nothing where nothing changes. */
  #writeLittle(): void {
    this.write(() =>
      this.prepare(
        `insert into high_water (name, value) values ('write_check', 1)
         on conflict (name) do update set value = value + 1`,
      ).run(),
    );
  }

  #writeMuch(): void {
    this.write(() => {
      this.#db.exec("drop table if exists write_check; create table write_check (bytes blob) strict");
      this.#db.prepare("insert into write_check values (zeroblob(?))").run(CHECK_BYTES);
    });
    this.write(() => this.#db.exec("drop table write_check"));
  }

  /** Nothing is committed meanwhile: `write` refuses to. */
  async #writeAnew(sync: WalSync): Promise<void> {
    try {
      await sync.writeAnew(() => this.#db.pragma("wal_checkpoint(truncate)"));
    } catch (error) {
      throw notDurable(error);
    }
  }

  /** After a flush that failed nothing is accepted until everything was written anew, which this begins. */
  #assertDurable(): void {
    if (!this.#sync?.failure) return;
    const { failure } = this.#sync;
    this.#writeAnewSoon(this.#sync);
    throw notDurable(failure);
  }

  /** For callers who do not wait for it. Reading and writing the log takes this thread a while: not for each of them. */
  #writeAnewSoon(sync: WalSync): void {
    const now = this.clock.monotonic();
    if (now - this.#wroteAnewAt < WRITE_ANEW_MS) return;
    this.#wroteAnewAt = now;
    this.#writeAnew(sync).catch(() => undefined);
  }

  /**
   * Prepares a statement once. Rows come back as objects; integers as numbers, which all of ours fit. A limit is written
   * `limit +?`: a bare `limit ?` is something to plan by, so that SQLite plans the statement anew whenever it is bound,
   * which takes four times as long as reading a few rows.
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

  /** Runs `work` as one transaction, all or nothing; then tells the listeners what it signalled. */
  write<Result>(work: (now: number) => Result): Result {
    this.#assertOpen();
    this.#assertDurable();
    let result: Result;
    try {
      this.#begin.run();
      result = work(this.clock.now());
      this.#commit.run();
    } catch (error) {
      this.#signals = [];
      this.lines.clear();
      this.leases.clear();
      this.abilities.clear();
      this.mayContest = true;
      if (this.#db.inTransaction) this.#rollback.run();
      const told = toRotaError(error);
      this.#broken ||= told instanceof RotaError && told.cause === error;
      if (isFlushError(error)) this.#sync?.failed(error);
      throw told;
    }
    this.lines.committed();
    this.#sync?.committed();
    this.#tell();
    return result;
  }

  /**
   * The same for what is to leave nothing behind: SQLite overwrites what it deletes. That costs writes, and what an earlier
   * change left in a free part of a page stays there until `vacuum`: see docs/tenants.md.
   */
  erase<Result>(work: (now: number) => Result): Result {
    this.#assertOpen();
    this.#db.pragma("secure_delete = on");
    try {
      return this.write(work);
    } finally {
      this.#db.pragma("secure_delete = off");
    }
  }

  /** Takes the write-ahead log over into the file, and cuts it off: it holds pages as they were before. */
  emptyLog(): void {
    try {
      this.#db.pragma("wal_checkpoint(truncate)");
    } catch (error) {
      throw toRotaError(error);
    }
  }

  /** Answers what `look` sees, once all of it survives a power cut: what was told must not be untold. */
  async read<Result>(look: () => Result): Promise<Result> {
    const seen = look();
    await this.durable();
    return seen;
  }

  /** Resolves once everything committed so far survives a power cut. */
  async durable(): Promise<void> {
    this.#assertOpen();
    if (this.#sync === null) return;
    try {
      await this.#sync.durable();
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

  /** To be told when the transaction in progress is committed. */
  signal(signal: StorageSignal): void {
    this.#signals.push(signal);
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

  #tell(): void {
    if (this.#signals.length === 0) return;
    const signals = this.#signals;
    this.#signals = [];
    for (const listener of this.#listeners) for (const signal of signals) listener(signal);
  }

  /** A file that was restored must not hand out numbers again that readers have seen: see `EVENT_NUMBERS_PER_MS`. */
  #beyondLastEvent(): number {
    const newest = this.#db
      .prepare<[], { seq: number; at: number }>(
        "select last_seq as seq, at from event order by last_seq desc limit 1",
      )
      .get();
    if (newest === undefined) return 0;
    return newest.seq + Math.max(this.clock.now() - newest.at, 0) * EVENT_NUMBERS_PER_MS;
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

/** `missing`: what was not found, which a link may have led to. */
function reasonFor(code: string, path: string, missing?: string): string | undefined {
  const folder = dirname(path);
  switch (code) {
    case "ENOENT":
      return `there is no folder ${missing === undefined || missing === resolve(folder) ? folder : missing}`;
    case "EACCES":
    case "EROFS":
    case "SQLITE_CANTOPEN":
      return `files in ${folder} cannot be written, or it is not a file`;
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

/** Failures of the file or the disk, by the start of their code: something to wait for. */
const AWAY_CODES = [
  "SQLITE_BUSY",
  "SQLITE_IOERR",
  "SQLITE_FULL",
  "SQLITE_CANTOPEN",
  "SQLITE_READONLY",
  "SQLITE_NOTADB",
];

/** A database that is away is something to wait for; anything else is a fault of ours and stays what it is. */
function toRotaError(error: unknown): unknown {
  const away = error instanceof Sqlite.SqliteError && AWAY_CODES.some((code) => error.code.startsWith(code));
  return away ? new RotaError("storage_unavailable", `SQLite: ${error.message}`, { cause: error }) : error;
}

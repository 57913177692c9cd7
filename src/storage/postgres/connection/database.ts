import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import pg, { type PoolConfig } from "pg";
import type { Clock } from "../../../model/clock.ts";
import { RotaError } from "../../../model/errors.ts";
import type { StorageSignal } from "../../storage.ts";
import { isNotUpYet, isTransient, isUnknownName, replacedError, toRotaError } from "./errors.ts";
import { Notifications } from "./listen-notify.ts";
import { IS_BEHIND } from "./skip-numbers.ts";

/** Writers wait for the write lock anyway. The other connections serve reads beside them. */
const CONNECTIONS_MAX = 6;
const TRIES_MAX = 5;
/**
 * Timeouts of queries in this process. The server cancels its statements earlier. These only apply when the server is frozen, or
 * when a network drops packets: nothing else would detect that.
 */
const TIMEOUTS = { readMs: 10_000, writeMs: 20_000 } as const;
/** How long `close` waits. A connection that was cut off cannot close cleanly. */
const CLOSE_MS = 2_000;

export interface PostgresOptions {
  readonly url: string;
  /** How long `open` waits for a database that is not up yet. Default: it does not wait. */
  readonly waitMs?: number;
  /** Called once if the database is not up yet. */
  readonly onWait?: (reason: string) => void;
  /** Replaces `TIMEOUTS`. */
  readonly timeouts?: { readonly readMs: number; readonly writeMs: number };
  /** Whether a node that registers prepares its connections for the first task, in the background. Default: false. */
  readonly warmUp?: boolean;
  /** For tests: replaces the database's clock. */
  readonly clock?: Clock;
}

export interface Statement {
  /** Prepared under this name, once per connection. Left out: parsed each time. */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** For a call that recognises its repetition, so that it can be repeated when its connection broke. */
export type RepeatableStatement = (tries: number) => Statement;

/** Its commit waits until it is on disk, and with it everything committed before. */
const EMIT = "pg_logical_emit_message(true, 'rota', '')";
const FLUSH = { name: "flush", text: `select ${EMIT}` };

/**
 * The same, if anything is not flushed yet. The positions do not include synchronous standbys: if there are any, the
 * flush waits for them.
 */
const FLUSH_REST = {
  name: "flush_rest",
  text: `select ${EMIT} where pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()
                           or current_setting('synchronous_standby_names') <> ''`,
  values: [],
};

/**
 * Whether a migration of a later version has dropped the functions of this one: their schema is the first in the search path,
 * the tables are in the second.
 */
const IS_REPLACED = "current_schema() = 'rota'";

/** The connections: statements, signals, the clock. The operations are in files of their own. */
export class PostgresDatabase {
  readonly #pool: pg.Pool;
  /** A connection reserved for `writeFirst`: a node must renew its lease while all other connections wait for the write lock. */
  readonly #lifeline: pg.Pool;
  readonly #clock: Clock | undefined;
  readonly #warmsUp: boolean;
  readonly #timeouts: NonNullable<PostgresOptions["timeouts"]>;
  readonly #listeners = new Set<(signal: StorageSignal) => void>();
  readonly #notifications: Notifications;
  /** Connections on which `warmUp` has run. */
  readonly #warm = new WeakSet<pg.ClientBase>();
  #closing: Promise<void> | null = null;
  /** The highest event number that this process has seen. */
  #highestEvent = 0;
  /** Another connection to this database may act for the same node, so it does not start at 0. */
  #lastRequest = randomInt(2 ** 47);

  /** Connects to a database whose schema is up to date. */
  static async open(config: PoolConfig, options: PostgresOptions): Promise<PostgresDatabase> {
    const db = new PostgresDatabase(config, options);
    try {
      await db.#notifications.start();
      await db.#skipNumbers();
    } catch (error) {
      await db.close();
      throw toRotaError(error);
    }
    return db;
  }

  private constructor(config: PoolConfig, { clock, warmUp = false, timeouts = TIMEOUTS }: PostgresOptions) {
    this.#clock = clock;
    this.#warmsUp = warmUp;
    this.#timeouts = timeouts;
    const onConnect = (client: pg.ClientBase) => this.#keepNumbers(client);
    // Connections stay open when they are idle: the first statements of a new one take 10 to 20 ms.
    this.#pool = new pg.Pool({ ...config, onConnect, max: CONNECTIONS_MAX, idleTimeoutMillis: 0 });
    this.#lifeline = new pg.Pool({ ...config, onConnect, max: 1, idleTimeoutMillis: 0 });
    // The next query replaces a connection that breaks while idle. Without a listener, its error would end the process.
    for (const pool of [this.#pool, this.#lifeline]) pool.on("error", () => undefined);
    this.#notifications = new Notifications({
      config,
      self: randomUUID(),
      send: (channel, payload) =>
        this.#pool.query({
          name: "notify",
          text: "select pg_notify($1, $2)",
          values: [channel, payload],
          // Signals that come meanwhile wait for it.
          query_timeout: this.#timeouts.readMs,
        } as pg.QueryConfig),
      onSignal: (signal) => void this.#onSignal(signal),
    });
  }

  /** This process has seen an event with this number. It must not be assigned again, even after a restore of the database. */
  sawEvent(seq: number): void {
    this.#highestEvent = Math.max(this.#highestEvent, seq);
  }

  /** A number by which the database recognises a request of this process that is repeated. */
  nextRequest(): number {
    this.#lastRequest += 1;
    return this.#lastRequest;
  }

  /**
   * Calls a function that writes. Its first parameter, `$1`, is the time, null for the database's own. `statement` may depend on
   * the number of the try, which is 1 at first.
   */
  write<Row extends object>(statement: Statement | RepeatableStatement): Promise<Row[]> {
    return this.#retry(
      (tries) => this.#query(this.#pool, this.#atTime(statement, tries), this.#timeouts.writeMs),
      typeof statement === "function",
    );
  }

  /**
   * As `write`, for a function whose commit does not wait for the disk. `durable` resolves once the commit survives a crash. The
   * flush runs on the same connection: after a crash, a flush on another would succeed although the commit is lost.
   */
  writeEarly<Row extends object>(
    statement: Statement | RepeatableStatement,
  ): Promise<{ rows: Row[]; durable: Promise<void> }> {
    return this.#retry(
      async (tries) => {
        const client = await this.#pool.connect();
        const timeoutMs = this.#timeouts.writeMs;
        const rows = await releaseIfBroken(client, () =>
          ask<Row>(client, this.#atTime(statement, tries), timeoutMs),
        );
        const durable = releaseIfBroken(client, () => ask(client, { ...FLUSH, values: [] }, timeoutMs)).then(
          () => client.release(),
          (error) => Promise.reject(toRotaError(error)),
        );
        // A caller that sends nothing again does not wait for it.
        durable.catch(() => undefined);
        return { rows, durable };
      },
      typeof statement === "function",
    );
  }

  /**
   * Calls a function that writes, and waits until its commit survives a crash. While others write, its procedure `…_durably` flushes
   * after the write lock is free; a caller that writes alone saves that commit. `results`: how many columns they return.
   */
  writeDurably<Row extends object>({
    name,
    results,
    values,
  }: {
    name: string;
    results: number;
    values: readonly unknown[];
  }): Promise<Row[]> {
    const given = ["$1", ...values.map((_, n) => `$${n + 2}`)];
    if (!this.othersAlive && this.#pool.idleCount === this.#pool.totalCount) {
      // A call that finds its tasks inserted already writes nothing, but must not answer before they are on disk.
      const text = `select f.* from (select ${EMIT}) flush, ${name}(${given.join(", ")}) f`;
      return this.write({ name, text, values });
    }
    const all = [...given, ...Array<string>(results).fill("null")];
    return this.write({ name: `${name}_durably`, text: `call ${name}_durably(${all.join(", ")})`, values });
  }

  read<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#retry(() => this.#query(this.#pool, statement, this.#timeouts.readMs));
  }

  /**
   * As `read`. Resolves once what it read survives a crash. Commits do not wait for the disk under the write lock, so a reader may
   * see one before it is flushed. A crash could undo it, and the number of its event would be assigned again. The flush runs on
   * the connection that read: after a crash, it would succeed on another. While the server is idle, it writes nothing.
   */
  readDurably<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#retry(async () => {
      const client = await this.#pool.connect();
      const rows = await releaseIfBroken(client, async () => {
        const found = await ask<Row>(client, statement, this.#timeouts.readMs);
        if (found.length > 0) await ask(client, FLUSH_REST, this.#timeouts.writeMs);
        return found;
      });
      client.release();
      return rows;
    });
  }

  /** As `write`, on a reserved connection: it never waits for other calls of this process. */
  writeFirst<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#retry(() => this.#query(this.#lifeline, this.#atTime(statement, 1), this.#timeouts.writeMs));
  }

  /** Writes, because a server that is read-only or has no disk space left still responds to reads. */
  async check(): Promise<void> {
    const [row] = await this.read<{ replaced: boolean }>({
      name: "check",
      text: `select ${EMIT}, ${IS_REPLACED} as replaced`,
      values: [],
    });
    if (row?.replaced) throw replacedError();
  }

  async now(): Promise<number> {
    const [row] = await this.write<{ now: string }>({
      name: "now",
      text: "select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now",
      values: [],
    });
    return Number(row?.now);
  }

  /**
   * Opens all connections and runs this statement on each that is new. Failures do not matter: a connection that is not prepared
   * is only slower at its first task.
   */
  async warmUp(statement: Statement): Promise<void> {
    if (!this.#warmsUp) return;
    const held: pg.PoolClient[] = [];
    try {
      while (held.length < CONNECTIONS_MAX && this.#closing === null) {
        const client = await this.#pool.connect();
        held.push(client);
        if (this.#warm.has(client)) continue;
        this.#warm.add(client);
        await ask(client, statement, this.#timeouts.writeMs).catch((error) => {
          held.pop();
          client.release(true);
          throw error;
        });
      }
    } catch {
      // The pool replaces a connection that broke.
    } finally {
      for (const client of held) client.release();
    }
  }

  /** Notifies this process and the other nodes of what a committed transaction may mean to them. */
  signal(signal: StorageSignal): void {
    this.signalHere(signal);
    this.signalOthers(signal);
  }

  signalHere(signal: StorageSignal): void {
    for (const listener of this.#listeners) listener(signal);
  }

  signalOthers(signal: StorageSignal): void {
    this.#notifications.notifyOthers(signal);
  }

  /** False while this node knows that it is alone. */
  get othersAlive(): boolean {
    return this.#notifications.othersAlive;
  }

  /** The heartbeat counts live nodes. While this node is alone, it sends no notifications. */
  setOthersAlive(alive: boolean): void {
    this.#notifications.othersAlive = alive;
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
    await this.#notifications.sendLast();
    const closed = Promise.all([this.#notifications.stop(), this.#pool.end(), this.#lifeline.end()]);
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
  }

  #atTime(given: Statement | RepeatableStatement, tries: number): Statement {
    const statement = typeof given === "function" ? given(tries) : given;
    return { ...statement, values: [this.#clock?.now() ?? null, ...statement.values] };
  }

  async #query<Row extends object>(pool: pg.Pool, statement: Statement, timeoutMs: number): Promise<Row[]> {
    const { rows } = await pool.query<Row>({
      ...statement,
      values: [...statement.values],
      query_timeout: timeoutMs,
    } as pg.QueryConfig);
    return rows;
  }

  /** Repeats what failed for a reason that passes. `repeatable`: also once if the connection broke. */
  async #retry<Result>(work: (tries: number) => Promise<Result>, repeatable = false): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closing !== null) throw new RotaError("storage_unavailable", "the storage is closed");
      try {
        return await work(tries);
      } catch (error) {
        const isRepeated = repeatable && tries === 1 && isNotUpYet(error);
        if (isUnknownName(error) && (await this.#isReplaced())) throw replacedError(error);
        if (!isRepeated && (!isTransient(error) || tries === TRIES_MAX)) throw toRotaError(error);
      }
    }
  }

  async #isReplaced(): Promise<boolean> {
    const statement = { name: "is_replaced", text: `select ${IS_REPLACED} as replaced`, values: [] };
    const rows = await this.#query<{ replaced: boolean }>(this.#pool, statement, this.#timeouts.readMs).catch(
      () => [],
    );
    return rows.some(({ replaced }) => replaced);
  }

  /** The database may have been replaced while the connection was lost, so event numbers are skipped first. */
  async #onSignal(signal: StorageSignal): Promise<void> {
    if (signal.kind === "reconnected") await this.#skipNumbers().catch(() => undefined);
    this.signalHere(signal);
  }

  async #skipNumbers(): Promise<void> {
    await this.write({
      name: "skip_event_numbers",
      text: "select skip_event_numbers($1, $2)",
      values: [this.#highestEvent],
    });
  }

  /**
   * Runs before a new connection is used. The database behind it may have been restored to an earlier state. It would then assign
   * numbers again that this process has seen.
   */
  async #keepNumbers(client: pg.ClientBase): Promise<void> {
    // The pool listens for errors only while a connection is idle. Unheard, one would end the process.
    client.on("error", () => undefined);
    if (this.#highestEvent === 0) return;
    const { readMs, writeMs } = this.#timeouts;
    const check = { text: IS_BEHIND, values: [this.#highestEvent] };
    const [row] = await ask<{ behind: boolean }>(client, check, readMs);
    if (!row?.behind) return;
    const skip = { text: "select skip_event_numbers($1, $2)", values: [this.#highestEvent] };
    await ask(client, this.#atTime(skip, 1), writeMs);
  }
}

async function ask<Row extends object>(
  client: pg.ClientBase,
  { name, text, values }: Statement,
  timeoutMs: number,
): Promise<Row[]> {
  const query = { text, values: [...values], query_timeout: timeoutMs };
  return (await client.query<Row>(name === undefined ? query : { ...query, name })).rows;
}

/** A query that failed in the middle may leave its connection in any state: the pool replaces it. */
async function releaseIfBroken<Result>(client: pg.PoolClient, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    client.release(true);
    throw error;
  }
}

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import pg, { type PoolConfig } from "pg";
import type { Clock } from "../../../model/clock.ts";
import { RotaError } from "../../../model/errors.ts";
import { readMigrations } from "../../migrations.ts";
import type { StorageSignal } from "../../storage.ts";
import { isTransient, toOpenError, toRotaError } from "./errors.ts";
import { FUNCTION_SCHEMA } from "./functions.ts";
import { Notifications } from "./listen-notify.ts";
import { migrate } from "./migrate.ts";
import { IS_BEHIND } from "./skip-numbers.ts";
import { untilUp } from "./until-up.ts";

/** Writers take turns at the gate anyway; the rest are for reads beside them. */
const CONNECTIONS_MAX = 6;
const CONNECT_TIMEOUT_MS = 5000;
const TRIES_MAX = 5;
/**
 * How long an answer is waited for. The server ends its statements before, so that this is for one that is frozen, or
 * behind a network that drops what is sent: nobody else would notice.
 */
const TIMEOUTS = { readMs: 10_000, writeMs: 20_000 } as const;
/** Connections that are cut off cannot say goodbye; they are not waited for longer than this. */
const CLOSE_MS = 2_000;

/**
 * Settings of every connection. Timeouts end whatever would hold the gate for ever. Plans are made once, where PostgreSQL
 * would make them anew for every call with a single task, which takes longer than the call; sequential scans are off
 * because they are made while tables are still small, and must hold when they are not. Bitmap scans are off because pages
 * of a list are short: where the statistics promise few rows, the planner would read all of a tenant's and sort them.
 */
export const CONNECTION_SETTINGS = {
  search_path: `${FUNCTION_SCHEMA},rota`,
  statement_timeout: "15s",
  lock_timeout: "10s",
  idle_in_transaction_session_timeout: "10s",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
  client_min_messages: "warning",
};

export interface PostgresOptions {
  readonly url: string;
  /** How long a database that is not up yet is waited for; left out: not at all. */
  readonly waitMs?: number;
  /** Called once if it has to be waited for. */
  readonly onWait?: (reason: string) => void;
  /** How long an answer is waited for. */
  readonly timeouts?: { readonly readMs: number; readonly writeMs: number };
  /** For tests: replaces the database's clock. */
  readonly clock?: Clock;
}

export interface Statement {
  /** Prepared under this name, once per connection. Left out: parsed each time. */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The connections: statements, signals, the clock. The operations are in files of their own. */
export class PostgresDatabase {
  readonly #pool: pg.Pool;
  /** One connection that nothing else can take: a lease must be renewed while all others wait for the gate. */
  readonly #lifeline: pg.Pool;
  readonly #clock: Clock | undefined;
  readonly #timeouts: NonNullable<PostgresOptions["timeouts"]>;
  readonly #listeners = new Set<(signal: StorageSignal) => void>();
  readonly #notifications: Notifications;
  #closing: Promise<void> | null = null;
  /** The highest number of an event that this process has seen. */
  #highestEvent = 0;

  static async open(options: PostgresOptions): Promise<PostgresDatabase> {
    const config = connectionConfig(options.url);
    const { waitMs = 0, onWait = () => {} } = options;
    await untilUp(() => migrateOnce(config), { waitMs, onWait });
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

  private constructor(config: PoolConfig, { clock, timeouts = TIMEOUTS }: PostgresOptions) {
    this.#clock = clock;
    this.#timeouts = timeouts;
    const onConnect = (client: pg.ClientBase) => this.#keepNumbers(client);
    this.#pool = new pg.Pool({ ...config, onConnect, max: CONNECTIONS_MAX });
    this.#lifeline = new pg.Pool({ ...config, onConnect, max: 1 });
    // A connection that breaks while idle is replaced by the next query; unheard, its error would end the process.
    for (const pool of [this.#pool, this.#lifeline]) pool.on("error", () => undefined);
    this.#notifications = new Notifications({
      config,
      self: randomUUID(),
      send: (channel, payload) =>
        this.#pool.query({ name: "notify", text: "select pg_notify($1, $2)", values: [channel, payload] }),
      hear: (signal) => void this.#hear(signal),
    });
  }

  /** An event of this number was seen here: it must not be handed out again, even if the database goes back. */
  sawEvent(seq: number): void {
    this.#highestEvent = Math.max(this.#highestEvent, seq);
  }

  /** Calls a function that writes. Its first parameter, `$1`, is the time, null for the database's own. */
  write<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#query(this.#pool, this.#atTime(statement), this.#timeouts.writeMs);
  }

  read<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#query(this.#pool, statement, this.#timeouts.readMs);
  }

  /** As `write`, for what must get through whatever else is going on. */
  writeFirst<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.#query(this.#lifeline, this.#atTime(statement), this.#timeouts.writeMs);
  }

  /** Resolves once everything committed so far survives a crash: a commit that waits for the disk takes all others along. */
  async durable(): Promise<void> {
    await this.read({ name: "flush", text: "select pg_logical_emit_message(true, 'rota', '')", values: [] });
  }

  /** A server that only reads, or has no room left, still says what time it is. */
  check(): Promise<void> {
    return this.durable();
  }

  async now(): Promise<number> {
    const [row] = await this.write<{ now: string }>({
      name: "now",
      text: "select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now",
      values: [],
    });
    return Number(row?.now);
  }

  /** Tells this process and the other nodes what a committed transaction may mean to them. */
  signal(signal: StorageSignal): void {
    this.#tell(signal);
    this.signalOthers(signal);
  }

  signalOthers(signal: StorageSignal): void {
    this.#notifications.tellOthers(signal);
  }

  /** What a heartbeat counted: while this node is alone, nobody needs to be notified. */
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
    const closed = Promise.all([this.#notifications.stop(), this.#pool.end(), this.#lifeline.end()]);
    await Promise.race([closed, delay(CLOSE_MS, undefined, { ref: false })]);
  }

  #atTime(statement: Statement): Statement {
    return { ...statement, values: [this.#clock?.now() ?? null, ...statement.values] };
  }

  async #query<Row extends object>(pool: pg.Pool, statement: Statement, timeoutMs: number): Promise<Row[]> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closing !== null) throw new RotaError("storage_unavailable", "the storage is closed");
      try {
        const { rows } = await pool.query<Row>({
          ...statement,
          values: [...statement.values],
          query_timeout: timeoutMs,
        } as pg.QueryConfig);
        return rows;
      } catch (error) {
        if (!isTransient(error) || tries === TRIES_MAX) throw toRotaError(error);
      }
    }
  }

  /** The database may have been replaced while the connection was lost. */
  async #hear(signal: StorageSignal): Promise<void> {
    if (signal.kind === "reconnected") await this.#skipNumbers().catch(() => undefined);
    this.#tell(signal);
  }

  async #skipNumbers(): Promise<void> {
    await this.write({
      name: "skip_event_numbers",
      text: "select skip_event_numbers($1, $2)",
      values: [this.#highestEvent],
    });
  }

  /**
   * Before a new connection is used for anything: the database behind it may be one that was put back to an earlier state,
   * and would hand out numbers again that were seen here.
   */
  async #keepNumbers(client: pg.ClientBase): Promise<void> {
    if (this.#highestEvent === 0) return;
    const { rows } = await client.query<{ behind: boolean }>(IS_BEHIND, [this.#highestEvent]);
    if (!rows[0]?.behind) return;
    const now = this.#clock?.now() ?? null;
    await client.query("select skip_event_numbers($1, $2)", [now, this.#highestEvent]);
  }

  #tell(signal: StorageSignal): void {
    for (const listener of this.#listeners) listener(signal);
  }
}

function connectionConfig(url: string): PoolConfig {
  const address = new URL(url);
  // Options in the URL would replace ours: both count, and where they disagree, ours.
  const given = address.searchParams.get("options") ?? "";
  address.searchParams.delete("options");
  const own = Object.entries(CONNECTION_SETTINGS).map(([name, value]) => `-c ${name}=${value}`);
  return {
    connectionString: address.href,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: "rota",
    options: [given, ...own].join(" ").trim(),
  };
}

async function migrateOnce(config: PoolConfig): Promise<void> {
  const client = new pg.Client(config);
  client.on("error", () => undefined);
  try {
    await client.connect();
    await migrate(client, readMigrations(new URL("../migrations/", import.meta.url)));
  } catch (error) {
    throw toOpenError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

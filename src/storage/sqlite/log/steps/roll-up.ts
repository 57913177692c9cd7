import type { EventType } from "../../../../model/event.ts";
import {
  BUCKETS,
  bucketOf,
  OTHER_KEYS,
  ROLLUP_COUNTS,
  ROLLUP_KEYS_MAX,
  ROLLUP_KINDS,
  ROLLUP_RETENTION_MS,
  ROLLUP_STEPS,
  type RollupCount,
  type RollupKind,
  type RollupStep,
  stepStart,
} from "../../../../model/rollup.ts";
import { ROLLUP_SLICE_OF_PRUNE } from "../../../storage.ts";
import type { SqliteDatabase } from "../../connection/database.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { Age } from "../../tasks/steps/delete-task.ts";

/**
 * Counts the next events of the log. Rows of the log are counted whole, so the last one may exceed
 * `limit`.
 */
export function rollUp(tx: Transaction, limit: number): { events: number; more: boolean } {
  const { rows, events, more } = nextRows(tx, limit);
  const last = rows.at(-1);
  if (last === undefined) return { events: 0, more: false };
  const slice = new Slice(tx);
  for (const row of rows) slice.count(row);
  writeBlocks(tx, slice.blocks());
  tx.prepare(
    `insert into high_water (name, value) values ('rollup', ?)
     on conflict (name) do update set value = excluded.value`,
  ).run(last.last_seq);
  return { events, more };
}

/** Counts the next slice of events of this age that are not counted yet. Returns whether all of them are counted now. */
export function countBeforePrune(tx: Transaction, age: Age): boolean {
  if (isCounted(tx, age)) return true;
  rollUp(tx, ROLLUP_SLICE_OF_PRUNE);
  return isCounted(tx, age);
}

/** Counts all events that are not counted yet. Tasks that are deleted next take the lane and agent of their events along. */
export function countAll(tx: Transaction): void {
  while (rollUp(tx, ROLLUP_SLICE_OF_PRUNE).more);
}

function isCounted(tx: Transaction, { cutoff, latest }: Age): boolean {
  const at = nextEventAt(tx.db);
  return at === null || (at >= cutoff && at <= latest);
}

/** The time of the first event that is not counted; null: there is none. */
export function nextEventAt(db: SqliteDatabase): number | null {
  const row = db
    .prepare<{ at: number }>("select at from event where last_seq > ? order by last_seq limit 1")
    .get(countedUpTo(db));
  return row?.at ?? null;
}

function countedUpTo(db: SqliteDatabase): number {
  return (
    db.prepare<{ value: number }>("select value from high_water where name = 'rollup'").get()?.value ?? 0
  );
}

interface LogRow {
  readonly last_seq: number;
  readonly count: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly task_seqs: string;
  readonly data: string | null;
}

function nextRows(tx: Transaction, limit: number): { rows: LogRow[]; events: number; more: boolean } {
  const rows: LogRow[] = [];
  let events = 0;
  const next = tx.prepare<LogRow>(
    "select last_seq, count, type, at, tenant, task_seqs, data from event where last_seq > ? order by last_seq",
  );
  for (const row of next.iterate(countedUpTo(tx.db))) {
    if (events >= limit) return { rows, events, more: true };
    rows.push(row);
    events += row.count;
  }
  return { rows, events, more: false };
}

const COUNT_OF: Readonly<Partial<Record<EventType, RollupCount>>> = {
  "task.created": "submitted",
  "task.started": "started",
  "task.completed": "done",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
};

/** The amounts to add to one row, or to several. */
class Sums {
  readonly counts: Record<RollupCount, number> = {
    submitted: 0,
    started: 0,
    done: 0,
    failed: 0,
    cancelled: 0,
    tokens: 0,
  };
  readonly wait = new Spread();
  readonly run = new Spread();

  add({ counts, wait, run }: Sums): void {
    this.counts.submitted += counts.submitted;
    this.counts.started += counts.started;
    this.counts.done += counts.done;
    this.counts.failed += counts.failed;
    this.counts.cancelled += counts.cancelled;
    this.counts.tokens += counts.tokens;
    this.wait.add(wait.buckets, wait.max);
    this.run.add(run.buckets, run.max);
  }
}

class Spread {
  /** Null: all buckets are empty. With many agents, most are. */
  buckets: number[] | null = null;
  max = 0;

  observe(ms: number, times: number): void {
    const bucket = bucketOf(ms);
    this.buckets ??= Array<number>(BUCKETS).fill(0);
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + times;
    if (ms > this.max) this.max = ms;
  }

  add(others: readonly number[] | null, max: number): void {
    if (others === null) return;
    const sums = this.buckets;
    this.buckets = sums === null ? [...others] : sums.map((sum, n) => sum + (others[n] ?? 0));
    if (max > this.max) this.max = max;
  }

  get json(): string {
    return this.buckets === null ? EMPTY_BUCKETS : JSON.stringify(this.buckets);
  }
}

const EMPTY_BUCKETS = JSON.stringify(Array(BUCKETS).fill(0));

/** The statistics of one minute, by agent queue; null: deleted tasks. */
class Minute {
  readonly tenant: string;
  readonly at: number;
  readonly queues = new Map<number | null, Sums>();

  constructor(tenant: string, at: number) {
    this.tenant = tenant;
    this.at = at;
  }

  sums(agentQueue: number | null): Sums {
    let sums = this.queues.get(agentQueue);
    if (sums === undefined) {
      sums = new Sums();
      this.queues.set(agentQueue, sums);
    }
    return sums;
  }
}

/** The statistics of all lanes, or all agents, of a tenant in one minute, hour or day: their rows are ranked together. */
interface Block {
  readonly tenant: string;
  readonly kind: RollupKind;
  readonly step: RollupStep;
  readonly at: number;
  readonly sums: Map<string, Sums>;
}

/** The events of one transaction, counted by minute and agent queue first, since there are few such pairs. */
class Slice {
  readonly #tx: Transaction;
  readonly #minutes = new Map<string, Minute>();

  constructor(tx: Transaction) {
    this.#tx = tx;
  }

  count(row: LogRow): void {
    const what = COUNT_OF[row.type];
    if (what === undefined) return;
    if (what === "submitted") this.#countOnly(row, what);
    else if (what !== "started") this.#countEnds(row, what);
    else if (isFirstStart(row)) this.#countStarts(row);
    else this.#countOnly(row, what);
  }

  // SQLite groups the tasks, which takes half the time of grouping them here.

  #countOnly(row: LogRow, what: RollupCount): void {
    const groups = this.#tx
      .prepare<[line: number | null, tasks: number]>(
        "select t.line, count(*) from json_each(?) j left join task t on t.seq = j.value group by 1",
      )
      .raw()
      .all(row.task_seqs);
    const minute = this.#minute(row);
    for (const [line, tasks] of groups) minute.sums(line).counts[what] += tasks;
  }

  #countStarts(row: LogRow): void {
    const groups = this.#tx
      .prepare<[line: number | null, readyAt: number | null, tasks: number]>(
        // After a retry has changed run_at, the time when the task could first start is unknown.
        `select t.line, iif(t.run_at > @at, null, max(t.created_at, coalesce(t.run_at, 0))), count(*)
           from json_each(@seqs) j left join task t on t.seq = j.value group by 1, 2`,
      )
      .raw()
      .all({ seqs: row.task_seqs, at: row.at });
    const minute = this.#minute(row);
    for (const [line, readyAt, tasks] of groups) {
      const sums = minute.sums(line);
      sums.counts.started += tasks;
      if (readyAt !== null) sums.wait.observe(Math.max(row.at - readyAt, 0), tasks);
    }
  }

  #countEnds(row: LogRow, what: RollupCount): void {
    const groups = this.#tx
      .prepare<[line: number | null, startedAt: number | null, seq: number | null, tasks: number]>(
        `select t.line, iif(t.completed_at = @at, t.last_started_at, null) as started_at,
                iif(t.input_tokens > 0 or t.output_tokens > 0 or t.last_started_at is null or t.completed_at <> @at,
                    j.value, null) as special, count(*)
           from json_each(@seqs) j left join task t on t.seq = j.value group by 1, 2, 3`,
      )
      .raw()
      .all({ seqs: row.task_seqs, at: row.at });
    const minute = this.#minute(row);
    for (const [line, lastStartedAt, special, tasks] of groups) {
      const sums = minute.sums(line);
      sums.counts[what] += tasks;
      if (line === null) continue;
      // The task may have been retried since: then this is an earlier attempt.
      const startedAt = lastStartedAt ?? (special === null ? null : this.#startOfAttempt(special, row.at));
      if (startedAt !== null) sums.run.observe(Math.max(row.at - startedAt, 0), tasks);
      if (special !== null) sums.counts.tokens += this.#newTokens(special, what);
    }
  }

  /** The start of the attempt that ended at this time; null: there is none. */
  #startOfAttempt(seq: number, endedAt: number): number | null {
    const attempt = this.#tx
      .prepare<{ started_at: number }>(
        "select started_at from attempt where task_seq = ? and ended_at = ? order by number desc limit 1",
      )
      .get(seq, endedAt);
    return attempt?.started_at ?? null;
  }

  /** The tokens that were not counted at an earlier end. A task that is `done` has no later end. */
  #newTokens(seq: number, what: RollupCount): number {
    const { tokens, counted } = this.#tx
      .prepare<{ tokens: number | null; counted: number | null }>(
        `select t.input_tokens + t.output_tokens as tokens, c.tokens as counted
           from task t left join counted_tokens c on c.task_seq = t.seq where t.seq = ?`,
      )
      .get(seq) as { tokens: number | null; counted: number | null };
    if (tokens === null || tokens === 0) return 0;
    if (what !== "done") {
      this.#tx
        .prepare("insert or replace into counted_tokens (task_seq, tokens) values (?, ?)")
        .run(seq, tokens);
    }
    return tokens - (counted ?? 0);
  }

  #minute({ tenant, at }: LogRow): Minute {
    const start = stepStart(at, 60);
    const name = `${start} ${tenant}`;
    let minute = this.#minutes.get(name);
    if (minute === undefined) {
      minute = new Minute(tenant, start);
      this.#minutes.set(name, minute);
    }
    return minute;
  }

  /** The counts by lane and by agent, for minutes, hours and days. */
  blocks(): Block[] {
    const blocks = new Map<string, Block>();
    for (const minute of this.#minutes.values()) {
      const { tenant } = minute;
      const byKind = this.#byKind(minute);
      for (const kind of ROLLUP_KINDS) {
        for (const step of ROLLUP_STEPS) {
          const at = stepStart(minute.at, step);
          if (Math.abs(this.#tx.now - at) > ROLLUP_RETENTION_MS[step]) continue;
          const { sums } = findBlock(blocks, { tenant, kind, step, at });
          for (const [key, more] of byKind[kind]) addTo(sums, key, more);
        }
      }
    }
    return [...blocks.values()];
  }

  #byKind({ tenant, queues }: Minute): Record<RollupKind, Map<string, Sums>> {
    const byKind = { lane: new Map<string, Sums>(), agent: new Map<string, Sums>() };
    for (const [line, sums] of queues) {
      const names = this.#namesOf(tenant, line);
      if (names === null) continue;
      for (const kind of ROLLUP_KINDS) addTo(byKind[kind], names[kind], sums);
    }
    return byKind;
  }

  /** Null: task and tenant are deleted. */
  #namesOf(tenant: string, agentQueue: number | null): Record<RollupKind, string> | null {
    if (agentQueue !== null) {
      const names = this.#tx
        .prepare<Record<RollupKind, string>>("select lane, agent from line where id = ?")
        .get(agentQueue);
      if (names !== undefined) return names;
    }
    const isThere = this.#tx.prepare("select 1 from tenant where id = ?").get(tenant) !== undefined;
    return isThere ? { lane: OTHER_KEYS, agent: OTHER_KEYS } : null;
  }
}

function findBlock(blocks: Map<string, Block>, name: Omit<Block, "sums">): Block {
  const id = `${name.kind} ${name.step} ${name.at} ${name.tenant}`;
  const block = blocks.get(id) ?? { ...name, sums: new Map<string, Sums>() };
  blocks.set(id, block);
  return block;
}

function addTo(all: Map<string, Sums>, key: string, more: Sums): void {
  let sums = all.get(key);
  if (sums === undefined) {
    sums = new Sums();
    all.set(key, sums);
  }
  sums.add(more);
}

function isFirstStart({ data }: LogRow): boolean {
  return data !== null && JSON.parse(data).attempt === 1;
}

interface StoredRow extends Readonly<Record<RollupCount, number>> {
  readonly key: string;
  readonly wait: string;
  readonly wait_max: number;
  readonly run: string;
  readonly run_max: number;
}

function writeBlocks(tx: Transaction, blocks: readonly Block[]): void {
  const stored = tx.prepare<StoredRow>(
    "select * from rollup where tenant = ? and kind = ? and step = ? and at = ?",
  );
  for (const block of blocks) {
    writeBlock(tx, block, stored.all(block.tenant, block.kind, block.step, block.at));
  }
}

/**
 * Adds to the rows of a block. If there are more than `ROLLUP_KEYS_MAX` keys, the least busy ones are merged into `OTHER_KEYS`.
 */
function writeBlock(tx: Transaction, block: Block, stored: readonly StoredRow[]): void {
  const { sums } = block;
  for (const row of stored) sums.get(row.key)?.add(toSums(row));
  const before = new Map(stored.map((row) => [row.key, row]));
  for (const key of quietKeys(sums, before)) {
    const row = before.get(key);
    const quiet = sums.get(key) ?? (row && toSums(row)) ?? new Sums();
    sums.delete(key);
    if (row !== undefined) deleteRow(tx, block, key);
    let others = sums.get(OTHER_KEYS);
    if (others === undefined) {
      const othersRow = before.get(OTHER_KEYS);
      others = othersRow === undefined ? new Sums() : toSums(othersRow);
      sums.set(OTHER_KEYS, others);
    }
    others.add(quiet);
  }
  for (const [key, written] of sums) writeRow(tx, block, [key, written]);
}

function quietKeys(sums: ReadonlyMap<string, Sums>, before: ReadonlyMap<string, StoredRow>): string[] {
  const keys = new Set([...sums.keys(), ...before.keys()]);
  keys.delete(OTHER_KEYS);
  if (keys.size <= ROLLUP_KEYS_MAX) return [];
  return [...keys]
    .map((key) => ({ key, busyness: busyness(sums.get(key)?.counts ?? before.get(key)) }))
    .sort((a, b) => b.busyness - a.busyness || (a.key < b.key ? -1 : 1))
    .slice(ROLLUP_KEYS_MAX)
    .map(({ key }) => key);
}

function busyness(counts: Readonly<Record<RollupCount, number>> | undefined): number {
  if (counts === undefined) return 0;
  const { submitted, started, done, failed, cancelled } = counts;
  return submitted + started + done + failed + cancelled;
}

function toSums(row: StoredRow): Sums {
  const sums = new Sums();
  for (const what of ROLLUP_COUNTS) sums.counts[what] = row[what];
  if (row.wait !== EMPTY_BUCKETS) sums.wait.add(JSON.parse(row.wait), row.wait_max);
  if (row.run !== EMPTY_BUCKETS) sums.run.add(JSON.parse(row.run), row.run_max);
  return sums;
}

function deleteRow(tx: Transaction, { tenant, kind, step, at }: Block, key: string): void {
  tx.prepare("delete from rollup where tenant = ? and kind = ? and step = ? and at = ? and key = ?").run(
    tenant,
    kind,
    step,
    at,
    key,
  );
}

function writeRow(tx: Transaction, block: Block, [key, { counts, wait, run }]: [string, Sums]): void {
  tx.prepare(
    `insert or replace into rollup (tenant, kind, step, at, key, submitted, started, done, failed, cancelled, tokens,
                                    wait, wait_max, run, run_max)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    block.tenant,
    block.kind,
    block.step,
    block.at,
    key,
    ...ROLLUP_COUNTS.map((what) => counts[what]),
    wait.json,
    wait.max,
    run.json,
    run.max,
  );
}

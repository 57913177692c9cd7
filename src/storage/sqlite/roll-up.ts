import type { EventType } from "../../model/event.ts";
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
} from "../../model/rollup.ts";
import { ROLLUP_SLICE } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Age } from "./prune.ts";

/** Counts the next events of the log, inside a transaction. A row of the log is counted whole: the last one may go beyond. */
export function rollUp(
  db: SqliteDatabase,
  { limit, now }: { limit: number; now: number },
): { events: number; more: boolean } {
  const { rows, events, more } = nextRows(db, limit);
  const last = rows.at(-1);
  if (last === undefined) return { events: 0, more: false };
  const slice = new Slice(db);
  for (const row of rows) slice.count(row);
  writeBlocks(db, slice.blocks(now));
  db.prepare(
    `insert into high_water (name, value) values ('rollup', ?)
     on conflict (name) do update set value = excluded.value`,
  ).run(last.last_seq);
  return { events, more };
}

/** Whether all of this age is counted. What is not is counted here, as far as one slice goes. */
export function countBeforePrune(db: SqliteDatabase, age: Age, now: number): boolean {
  if (isCounted(db, age)) return true;
  rollUp(db, { limit: ROLLUP_SLICE, now });
  return isCounted(db, age);
}

function isCounted(db: SqliteDatabase, { cutoff, latest }: Age): boolean {
  const at = nextEventAt(db);
  return at === null || (at >= cutoff && at <= latest);
}

/** When the first event happened that is not counted; null: there is none. */
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

function nextRows(db: SqliteDatabase, limit: number): { rows: LogRow[]; events: number; more: boolean } {
  const rows: LogRow[] = [];
  let events = 0;
  const next = db.prepare<LogRow>(
    "select last_seq, count, type, at, tenant, task_seqs, data from event where last_seq > ? order by last_seq",
  );
  for (const row of next.iterate(countedUpTo(db))) {
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

/** What is added to one row, or to several that it is part of. */
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
    for (const what of ROLLUP_COUNTS) this.counts[what] += counts[what];
    this.wait.add(wait);
    this.run.add(run);
  }
}

class Spread {
  readonly buckets: number[];
  max: number;

  constructor(buckets: number[] = Array<number>(BUCKETS).fill(0), max = 0) {
    this.buckets = buckets;
    this.max = max;
  }

  observe(ms: number): void {
    const bucket = bucketOf(ms);
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
    if (ms > this.max) this.max = ms;
  }

  add({ buckets, max }: Spread): void {
    for (let n = 0; n < BUCKETS; n += 1) this.buckets[n] = (this.buckets[n] ?? 0) + (buckets[n] ?? 0);
    if (max > this.max) this.max = max;
  }
}

/** A lane, or an agent, of a tenant in one minute, hour or day: all rows that are ranked together. */
interface Block {
  readonly tenant: string;
  readonly kind: RollupKind;
  readonly step: RollupStep;
  readonly at: number;
  readonly sums: Map<string, Sums>;
}

/** The events of one transaction, counted by minute and agent queue first: there are few of those. */
class Slice {
  readonly #db: SqliteDatabase;
  readonly #minutes = new Map<string, { tenant: string; at: number; queues: Map<number | null, Sums> }>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  count(row: LogRow): void {
    const what = COUNT_OF[row.type];
    if (what === undefined) return;
    if (what === "submitted") this.#countOnly(row, what);
    else if (what !== "started") this.#countEnds(row, what);
    else if (isFirstStart(row)) this.#countStarts(row);
    else this.#countOnly(row, what);
  }

  #countOnly(row: LogRow, what: RollupCount): void {
    const lines = this.#db
      .prepare<[number | null, number]>(
        `select t.line, count(*) from json_each(?) j left join task t on t.seq = j.value group by t.line`,
      )
      .raw()
      .all(row.task_seqs);
    for (const [line, count] of lines) this.#sums(row, line).counts[what] += count;
  }

  #countStarts(row: LogRow): void {
    const tasks = this.#db
      .prepare<[number | null, number, number | null]>(
        `select t.line, t.created_at, t.run_at from json_each(?) j left join task t on t.seq = j.value`,
      )
      .raw()
      .all(row.task_seqs);
    for (const [line, createdAt, runAt] of tasks) {
      const sums = this.#sums(row, line);
      sums.counts.started += 1;
      // After a retry has moved `run_at`, when the task could first start is known no more.
      if (line === null || (runAt ?? 0) > row.at) continue;
      sums.wait.observe(Math.max(row.at - Math.max(createdAt, runAt ?? 0), 0));
    }
  }

  #countEnds(row: LogRow, what: RollupCount): void {
    const tasks = this.#db
      .prepare<[number | null, number, number | null, number | null, number | null]>(
        `select t.line, j.value, t.completed_at, t.last_started_at, t.input_tokens + t.output_tokens
           from json_each(?) j left join task t on t.seq = j.value`,
      )
      .raw()
      .all(row.task_seqs);
    for (const [line, seq, completedAt, lastStartedAt, tokens] of tasks) {
      const sums = this.#sums(row, line);
      sums.counts[what] += 1;
      if (line === null) continue;
      // It may have been retried since: then the attempt is an earlier one.
      const isLast = completedAt === row.at && lastStartedAt !== null;
      const startedAt = isLast ? lastStartedAt : this.#startOfAttempt(seq, row.at);
      if (startedAt !== null) sums.run.observe(Math.max(row.at - startedAt, 0));
      if (tokens !== null && tokens > 0) sums.counts.tokens += this.#newTokens(seq, tokens, what);
    }
  }

  /** Of the attempt that ended at this moment; null: there is none. */
  #startOfAttempt(seq: number, endedAt: number): number | null {
    const attempt = this.#db
      .prepare<{ started_at: number }>(
        "select started_at from attempt where task_seq = ? and ended_at = ? order by number desc limit 1",
      )
      .get(seq, endedAt);
    return attempt?.started_at ?? null;
  }

  /** What was not counted at an earlier end. A task that is done has no later one. */
  #newTokens(seq: number, tokens: number, what: RollupCount): number {
    const counted = this.#db
      .prepare<{ tokens: number }>("select tokens from counted_tokens where task_seq = ?")
      .get(seq);
    if (what !== "done") {
      this.#db
        .prepare("insert or replace into counted_tokens (task_seq, tokens) values (?, ?)")
        .run(seq, tokens);
    }
    return tokens - (counted?.tokens ?? 0);
  }

  #sums({ tenant, at }: LogRow, line: number | null): Sums {
    const minute = stepStart(at, 60);
    const name = `${minute} ${tenant}`;
    let found = this.#minutes.get(name);
    if (found === undefined) {
      found = { tenant, at: minute, queues: new Map() };
      this.#minutes.set(name, found);
    }
    let sums = found.queues.get(line);
    if (sums === undefined) {
      sums = new Sums();
      found.queues.set(line, sums);
    }
    return sums;
  }

  /** The same by lane and by agent, for minutes, hours and days. */
  blocks(now: number): Block[] {
    const blocks = new Map<string, Block>();
    for (const { tenant, at: minute, queues } of this.#minutes.values()) {
      for (const [line, sums] of queues) {
        const names = this.#namesOf(tenant, line);
        if (names === null) continue;
        for (const kind of ROLLUP_KINDS) {
          for (const step of ROLLUP_STEPS) {
            const at = stepStart(minute, step);
            if (Math.abs(now - at) <= ROLLUP_RETENTION_MS[step])
              addTo(blocks, { tenant, kind, step, at }, names[kind], sums);
          }
        }
      }
    }
    return [...blocks.values()];
  }

  /** Null: task and tenant are gone. */
  #namesOf(tenant: string, line: number | null): Record<RollupKind, string> | null {
    if (line !== null) {
      const names = this.#db
        .prepare<Record<RollupKind, string>>("select lane, agent from line where id = ?")
        .get(line);
      if (names !== undefined) return names;
    }
    const isThere = this.#db.prepare("select 1 from tenant where id = ?").get(tenant) !== undefined;
    return isThere ? { lane: OTHER_KEYS, agent: OTHER_KEYS } : null;
  }
}

function addTo(blocks: Map<string, Block>, name: Omit<Block, "sums">, key: string, sums: Sums): void {
  const id = `${name.kind} ${name.step} ${name.at} ${name.tenant}`;
  let block = blocks.get(id);
  if (block === undefined) {
    block = { ...name, sums: new Map() };
    blocks.set(id, block);
  }
  const before = block.sums.get(key) ?? new Sums();
  before.add(sums);
  block.sums.set(key, before);
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

function writeBlocks(db: SqliteDatabase, blocks: readonly Block[]): void {
  const stored = db.prepare<StoredRow>(
    "select * from rollup where tenant = ? and kind = ? and step = ? and at = ?",
  );
  for (const block of blocks) {
    writeBlock(db, block, stored.all(block.tenant, block.kind, block.step, block.at));
  }
}

/** Adds to the rows of a block. Of more than `ROLLUP_KEYS_MAX` keys, the quietest join the others. */
function writeBlock(db: SqliteDatabase, block: Block, stored: readonly StoredRow[]): void {
  const { sums } = block;
  for (const row of stored) sums.get(row.key)?.add(toSums(row));
  const before = new Map(stored.map((row) => [row.key, row]));
  for (const key of quietKeys(sums, before)) {
    const row = before.get(key);
    const quiet = sums.get(key) ?? (row && toSums(row)) ?? new Sums();
    sums.delete(key);
    if (row !== undefined) deleteRow(db, block, key);
    let others = sums.get(OTHER_KEYS);
    if (others === undefined) {
      const othersRow = before.get(OTHER_KEYS);
      others = othersRow === undefined ? new Sums() : toSums(othersRow);
      sums.set(OTHER_KEYS, others);
    }
    others.add(quiet);
  }
  for (const [key, written] of sums) writeRow(db, block, key, written);
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
  sums.wait.add(new Spread(JSON.parse(row.wait), row.wait_max));
  sums.run.add(new Spread(JSON.parse(row.run), row.run_max));
  return sums;
}

function deleteRow(db: SqliteDatabase, { tenant, kind, step, at }: Block, key: string): void {
  db.prepare("delete from rollup where tenant = ? and kind = ? and step = ? and at = ? and key = ?").run(
    tenant,
    kind,
    step,
    at,
    key,
  );
}

function writeRow(db: SqliteDatabase, block: Block, key: string, { counts, wait, run }: Sums): void {
  db.prepare(
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
    JSON.stringify(wait.buckets),
    wait.max,
    JSON.stringify(run.buckets),
    run.max,
  );
}

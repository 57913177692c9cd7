import {
  BUCKETS,
  bucketOf,
  OTHER_KEYS,
  ROLLUP_COUNTS,
  ROLLUP_KEYS_MAX,
  ROLLUP_KINDS,
  ROLLUP_RETENTION_MS,
  ROLLUP_STEPS,
  ROLLUP_TIMES,
  type RollupCount,
  type RollupStep,
  type RollupTime,
  stepStart,
} from "../../../model/rollup.ts";
import {
  type ReadRollupsParams,
  ROLLUP_SLICE_OF_PRUNE,
  type RollupCursor,
  type RollupRow,
} from "../../storage.ts";
import type { OracleEvent, OracleRollup, OracleState, OracleTask } from "../state.ts";

export function advanceRollups(
  state: OracleState,
  { limit }: { limit: number },
): { events: number; more: boolean } {
  const left = state.events.filter(({ seq }) => seq > state.countedUpTo);
  const events = left.slice(0, limit);
  for (const event of events) count(state, event);
  state.countedUpTo = events.at(-1)?.seq ?? state.countedUpTo;
  foldQuiet(state);
  return { events: events.length, more: left.length > events.length };
}

/** Returns whether all expired events are counted. Counts the next slice of those that are not. */
export function countBeforePrune(state: OracleState, isPast: (at: number) => boolean): boolean {
  const isCounted = () => {
    const next = state.events.find(({ seq }) => seq > state.countedUpTo);
    return next === undefined || !isPast(next.at);
  };
  if (isCounted()) return true;
  advanceRollups(state, { limit: ROLLUP_SLICE_OF_PRUNE });
  return isCounted();
}

const COUNT_OF: Readonly<Partial<Record<OracleEvent["type"], RollupCount>>> = {
  "task.created": "submitted",
  "task.started": "started",
  "task.completed": "done",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
};

function count(state: OracleState, event: OracleEvent): void {
  const counted = COUNT_OF[event.type];
  const task = state.tasks.find(({ seq }) => seq === event.taskSeq);
  if (counted === undefined || (task === undefined && !state.tenants.has(event.tenant))) return;
  const waitedMs = task === undefined ? null : waitBefore(task, event);
  const ranMs = task === undefined ? null : runUntil(task, event);
  const tokens = task === undefined ? 0 : newTokens(state, task, event);
  for (const row of rowsOf(state, event, task)) {
    row[counted] += 1;
    row.tokens += tokens;
    if (waitedMs !== null) observe(row.wait, waitedMs);
    if (ranMs !== null) observe(row.run, ranMs);
  }
}

/** The rows of an event: one by lane and one by agent, for each step in which it has not expired. */
function rowsOf(
  state: OracleState,
  { tenant, at }: OracleEvent,
  task: OracleTask | undefined,
): OracleRollup[] {
  const now = state.clock.now();
  const steps = ROLLUP_STEPS.filter((step) => isKept({ step, at: stepStart(at, step) }, now));
  return ROLLUP_KINDS.flatMap((kind) =>
    steps.map((step) =>
      rowOf(state, { tenant, kind, step, at: stepStart(at, step), key: task?.[kind] ?? OTHER_KEYS }),
    ),
  );
}

type RollupName = Pick<OracleRollup, "tenant" | "kind" | "step" | "at" | "key">;

function rowOf(state: OracleState, name: RollupName): OracleRollup {
  const known = state.rollups.find(
    (row) =>
      row.tenant === name.tenant &&
      row.kind === name.kind &&
      row.step === name.step &&
      row.at === name.at &&
      row.key === name.key,
  );
  if (known !== undefined) return known;
  const row = {
    ...name,
    ...(Object.fromEntries(ROLLUP_COUNTS.map((what) => [what, 0])) as Record<RollupCount, number>),
    wait: { buckets: Array<number>(BUCKETS).fill(0), max: 0 },
    run: { buckets: Array<number>(BUCKETS).fill(0), max: 0 },
  };
  state.rollups.push(row);
  return row;
}

function observe(durations: OracleRollup[RollupTime], ms: number): void {
  const bucket = bucketOf(ms);
  durations.buckets[bucket] = (durations.buckets[bucket] ?? 0) + 1;
  durations.max = Math.max(durations.max, ms);
}

/** Null after a retry has changed `runAt`: then it is no longer known when the task could first start. */
function waitBefore({ createdAt, runAt }: OracleTask, { type, at, data }: OracleEvent): number | null {
  if (type !== "task.started" || data?.attempt !== 1 || (runAt ?? 0) > at) return null;
  return Math.max(at - Math.max(createdAt, runAt ?? 0), 0);
}

function isEnd({ type }: OracleEvent): boolean {
  return type === "task.completed" || type === "task.failed" || type === "task.cancelled";
}

/** The attempt that ended with the task. Null: the task ended while it waited. */
function runUntil(task: OracleTask, event: OracleEvent): number | null {
  const attempt = isEnd(event) ? task.attempts.findLast(({ endedAt }) => endedAt === event.at) : undefined;
  return attempt === undefined ? null : Math.max(event.at - attempt.startedAt, 0);
}

/** The tokens that were not counted at an earlier end of the task. */
function newTokens(state: OracleState, { seq, usage }: OracleTask, event: OracleEvent): number {
  if (!isEnd(event) || usage === null) return 0;
  const tokens = usage.inputTokens + usage.outputTokens;
  const counted = state.countedTokens.get(seq) ?? 0;
  state.countedTokens.set(seq, tokens);
  return tokens - counted;
}

/** If more than `ROLLUP_KEYS_MAX` keys have rows, the quietest are merged into `other`. */
function foldQuiet(state: OracleState): void {
  const named = state.rollups.filter(({ key }) => key !== OTHER_KEYS);
  const groups = Map.groupBy(named, ({ tenant, kind, step, at }) => JSON.stringify([tenant, kind, step, at]));
  for (const rows of groups.values()) {
    const quiet = rows
      .toSorted((a, b) => busyness(b) - busyness(a) || (a.key < b.key ? -1 : 1))
      .slice(ROLLUP_KEYS_MAX);
    for (const row of quiet) {
      const others = rowOf(state, { ...row, key: OTHER_KEYS });
      for (const what of ROLLUP_COUNTS) others[what] += row[what];
      for (const what of ROLLUP_TIMES) {
        others[what].buckets.forEach((sum, n) => {
          others[what].buckets[n] = sum + (row[what].buckets[n] ?? 0);
        });
        others[what].max = Math.max(others[what].max, row[what].max);
      }
    }
    state.rollups = state.rollups.filter((row) => !quiet.includes(row));
  }
}

function busyness({ submitted, started, done, failed, cancelled }: OracleRollup): number {
  return submitted + started + done + failed + cancelled;
}

export function readRollups(
  state: OracleState,
  { tenant, kind, step, from, to, after, limit }: ReadRollupsParams,
): { rows: RollupRow[]; next: RollupCursor | null } {
  const rows = state.rollups
    .filter((row) => row.tenant === tenant && row.kind === kind && row.step === step)
    .filter(({ at }) => at >= from && at < to)
    .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
    .filter(({ at, key }) => after === undefined || at > after.at || (at === after.at && key > after.key))
    .map(({ tenant: _1, kind: _2, step: _3, ...row }) => structuredClone(row));
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  return { rows: page, next: isMore ? { at: last.at, key: last.key } : null };
}

export function rollupsLateMs(state: OracleState): number {
  const next = state.events.find(({ seq }) => seq > state.countedUpTo);
  return next === undefined ? 0 : Math.max(state.clock.now() - next.at, 0);
}

/** Rows far in the future were written while the clock was wrong. */
function isKept({ step, at }: { step: RollupStep; at: number }, now: number): boolean {
  return at >= now - ROLLUP_RETENTION_MS[step] && at <= now + ROLLUP_RETENTION_MS[step];
}

export function pruneRollups(state: OracleState, { limit }: { limit: number }): { more: boolean } {
  const now = state.clock.now();
  const old = state.rollups.filter((row) => !isKept(row, now)).slice(0, limit);
  state.rollups = state.rollups.filter((row) => !old.includes(row));
  return { more: old.length === limit };
}

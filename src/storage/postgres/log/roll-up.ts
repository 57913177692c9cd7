import {
  BUCKET_STARTS,
  BUCKETS,
  OTHER_KEYS,
  ROLLUP_COUNTS,
  ROLLUP_KEYS_MAX,
  ROLLUP_RETENTION_MS,
  ROLLUP_STEPS,
  ROLLUP_TIMES,
} from "../../../model/rollup.ts";
import { ROLLUP_SLICE_OF_PRUNE } from "../../storage.ts";
import { readSql } from "../connection/sql-file.ts";

const EACH_BUCKET = Array.from({ length: BUCKETS }, (_, n) => n + 1);
const MAXES = ROLLUP_TIMES.map((time) => `${time}_max`);
const COLUMNS = ["tenant", "kind", "step", "at", "key", ...ROLLUP_COUNTS, ...ROLLUP_TIMES, ...MAXES].join(
  ", ",
);

/** A histogram, element by element. */
function buckets(element: (n: number) => string): string {
  return `array[${EACH_BUCKET.map(element).join(", ")}]`;
}

/** The bucket of a duration, from 1 on. */
function bucketOf(ms: string): string {
  return `width_bucket(${ms}, '{${BUCKET_STARTS.join(",")}}'::bigint[]) + 1`;
}

/** The values of rows that are merged into one. */
const SUMS = [
  ...ROLLUP_COUNTS.map((count) => `sum(${count})::bigint`),
  ...ROLLUP_TIMES.map((time) => buckets((n) => `sum(${time}[${n}])::bigint`)),
  ...MAXES.map((max) => `max(${max})`),
].join(", ");

/** The same for the events of one slice, which are few: PostgreSQL adds up small integers without numbers of any length. */
const SUMS_OF_SLICE = [
  ...ROLLUP_COUNTS.map((count) => (count === "tokens" ? "sum(tokens)::bigint" : `sum(${count}::integer)`)),
  ...ROLLUP_TIMES.map((time) => buckets((n) => `sum(${time}[${n}]::integer)`)),
  ...MAXES.map((max) => `max(${max})`),
].join(", ");

const ADD_UP = [
  ...ROLLUP_COUNTS.map((count) => `${count} = r.${count} + excluded.${count}`),
  ...ROLLUP_TIMES.map((time) => `${time} = ${buckets((n) => `r.${time}[${n}] + excluded.${time}[${n}]`)}`),
  ...MAXES.map((max) => `${max} = greatest(r.${max}, excluded.${max})`),
].join(", ");

const STEPS = ROLLUP_STEPS.map((step) => `(${step}, ${ROLLUP_RETENTION_MS[step]}::bigint)`).join(", ");

/** The last event that is counted. */
export const COUNTED_UP_TO = "coalesce((select value from high_water where name = 'rollup'), 0)";

/** How events `c` that are alike count. */
const EVENTS = [
  `${eventsWhere("c.type = 'task.created'")} as submitted`,
  `${eventsWhere("c.type = 'task.started'")} as started`,
  `${eventsWhere("c.type = 'task.completed'")} as done`,
  `${eventsWhere("c.type = 'task.failed'")} as failed`,
  `${eventsWhere("c.type = 'task.cancelled'")} as cancelled`,
  "sum(c.tokens)::bigint as tokens",
  ...ROLLUP_TIMES.map((time) => `${buckets((n) => eventsWhere(`c.${time}_bucket = ${n}`))} as ${time}`),
  ...ROLLUP_TIMES.map((time) => `coalesce(max(c.${time}_ms), 0) as ${time}_max`),
].join(", ");

function eventsWhere(condition: string): string {
  return `coalesce(sum(c.events) filter (where ${condition}), 0)`;
}

/**
 * Counting takes no write lock, so that tasks are not delayed. The row of high_water stays locked until the commit, so that one
 * node counts at a time; other nodes do not wait for it. A transaction that needs both takes the write lock first.
 */
export const ROLL_UP_FUNCTIONS = readSql(new URL("./roll-up.sql", import.meta.url), {
  OTHER_KEYS,
  WAIT_BUCKET: bucketOf("k.wait_ms"),
  RUN_BUCKET: bucketOf("k.run_ms"),
  EVENTS,
  COLUMNS,
  SUMS,
  SUMS_OF_SLICE,
  STEPS,
  ADD_UP,
  ROLLUP_KEYS_MAX,
  ROLLUP_SLICE_OF_PRUNE,
  COUNTED_UP_TO,
});

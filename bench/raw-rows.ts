import { V7Generator } from "uuidv7";
import { DEFAULT_RETRY_POLICY } from "../src/model/retry-policy.ts";
import { AGENTS, taskInput } from "./workload.ts";

/** What the raw measurements write for a task: the columns that Rota fills when it takes one in. */
export interface RawRow {
  readonly seq: number;
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly line: number;
  readonly priority: number;
  readonly rank: number;
  readonly state: string;
  readonly position: number;
  readonly created_at: number;
  readonly max_retries_if_lost: number;
  readonly spec: string;
}

export const RAW_COLUMNS = [
  "seq",
  "id",
  "tenant",
  "agent",
  "line",
  "priority",
  "rank",
  "state",
  "position",
  "created_at",
  "max_retries_if_lost",
  "spec",
] as const satisfies readonly (keyof RawRow)[];

/** Rows as Rota would make them of the same tasks, made before any clock runs. */
export function rawRows(count: number): RawRow[] {
  const ids = new V7Generator();
  const retryPolicy = { ...DEFAULT_RETRY_POLICY, maxRetries: 0 };
  return Array.from({ length: count }, (_, n) => {
    const { agentId, payload } = taskInput(n);
    return {
      seq: n + 1,
      id: `tsk_${ids.generate().toHex()}`,
      tenant: "default",
      agent: agentId,
      line: (n % AGENTS) + 1,
      priority: 2,
      rank: 2,
      state: "queued",
      position: Math.floor(n / AGENTS) + 1,
      created_at: Date.now(),
      max_retries_if_lost: 0,
      spec: JSON.stringify({ work: { kind: "custom", payload }, retryPolicy, timeoutMs: 120_000 }),
    };
  });
}

/** The rows in slices of `size`. */
export function inBatches(rows: readonly RawRow[], size: number): RawRow[][] {
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, n) =>
    rows.slice(n * size, (n + 1) * size),
  );
}

import { ROLLUP_COUNTS, type RollupKind, type RollupStep, stepStart } from "../../model/rollup.ts";
import type { RollupCursor, Storage } from "../../storage/storage.ts";

const HOUR_MS = 3_600_000;
/** Rows read at a time. */
const SLICE = 1_000;
/** Events are counted within a few seconds. If one is older than this, no node counts. */
const LATE_MAX_MS = 60_000;

export interface ExamineRollupsParams {
  readonly storage: Storage;
  readonly tenants: readonly string[];
  /** The storage's time. */
  readonly now: number;
  /** Whether this process should count. */
  readonly counts: boolean;
  readonly onSlice: (rows: number) => Promise<void>;
}

export interface RollupFindings {
  readonly ofAll: readonly string[];
  readonly ofTenants: ReadonlyMap<string, string>;
}

/**
 * Finds faults of the statistics over time: no node counts, or the last whole hour differs from the sum of its minutes, by lane
 * or by agent.
 */
export async function examineRollups(params: ExamineRollupsParams): Promise<RollupFindings> {
  const { storage, tenants, counts } = params;
  const ofTenants = new Map<string, string>();
  const lateMs = await storage.rollups.lateMs();
  const late = `The statistics over time are ${Math.round(lateMs / 1_000)} s behind: they should be a few seconds at most.`;
  for (const tenant of tenants) {
    const sums = await sumsOf(params, tenant);
    // A count between the two reads changes only one of them: only a lasting difference is a fault.
    if (areAlike(sums) || areAlike(await sumsOf(params, tenant))) continue;
    const [hour, minutes, agents] = [sums.hour, sums.minutes, sums.agents].map((numbers) =>
      numbers.join("/"),
    );
    ofTenants.set(
      tenant,
      `The last whole hour counts ${ROLLUP_COUNTS.join("/")} as ${hour}, its minutes as ${minutes} by lane and ${agents} by agent.`,
    );
  }
  return { ofAll: counts && lateMs > LATE_MAX_MS ? [late] : [], ofTenants };
}

interface Sums {
  readonly hour: readonly number[];
  readonly minutes: readonly number[];
  readonly agents: readonly number[];
}

async function sumsOf(params: ExamineRollupsParams, tenant: string): Promise<Sums> {
  return {
    hour: await sumOf(params, tenant, { kind: "lane", step: 3_600 }),
    minutes: await sumOf(params, tenant, { kind: "lane", step: 60 }),
    agents: await sumOf(params, tenant, { kind: "agent", step: 60 }),
  };
}

function areAlike({ hour, minutes, agents }: Sums): boolean {
  return hour.every((sum, n) => sum === minutes[n] && sum === agents[n]);
}

async function sumOf(
  { storage, now, onSlice }: ExamineRollupsParams,
  tenant: string,
  { kind, step }: { kind: RollupKind; step: RollupStep },
): Promise<readonly number[]> {
  const to = stepStart(now, 3_600);
  const sums = ROLLUP_COUNTS.map(() => 0);
  for (let after: RollupCursor | null | undefined; after !== null; ) {
    const range = { tenant, kind, step, from: to - HOUR_MS, to, limit: SLICE };
    const { rows, next } = await storage.rollups.read({ ...range, ...(after && { after }) });
    for (const row of rows) {
      for (const [n, count] of ROLLUP_COUNTS.entries()) sums[n] = (sums[n] ?? 0) + row[count];
    }
    await onSlice(rows.length);
    after = next;
  }
  return sums;
}

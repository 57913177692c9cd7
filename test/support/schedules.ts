import type { RetryPolicy } from "../../src/model/retry-policy.ts";
import type { RunRecord, ScheduleDefinition, ScheduleRecord, Storage } from "../../src/storage/storage.ts";
import { type EngineParams, makeEngine } from "./engine.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const RUN_RETRY: RetryPolicy = {
  maxRetries: 3,
  backoffMs: 2_000,
  backoffMultiplier: 2,
  maxBackoffMs: 30_000,
  jitter: 0.25,
};

export interface ScheduleOverrides extends Partial<ScheduleDefinition> {
  readonly tenant?: string;
  /** The first moment; left out: what the step says. */
  readonly nextFireAt?: number;
  readonly everyMs?: number;
}

/** Makes a schedule of every minute from `anchorAt` by default. */
export function createSchedule(
  storage: Storage,
  anchorAt: number,
  overrides: ScheduleOverrides = {},
): Promise<ScheduleRecord> {
  const { tenant = "default", nextFireAt, everyMs = MINUTE, ...definition } = overrides;
  return storage.schedules.create({
    tenant,
    status: "active",
    nextFireAt: nextFireAt ?? anchorAt + everyMs,
    source: null,
    definition: {
      name: null,
      agent: "index",
      work: { kind: "message", message: "look around" },
      phrase: "every minute",
      rule: { kind: "every", everyMs, tz: "UTC" },
      anchorAt,
      conversationId: null,
      sessionKey: null,
      postToSession: false,
      deleteAfterRun: false,
      retryPolicy: RUN_RETRY,
      overlap: "skip",
      catchUp: "one",
      usefulForMs: null,
      timeoutMs: null,
      lane: null,
      priority: null,
      metadata: null,
      callbackUrl: null,
      maxRuns: null,
      untilAt: null,
      pauseAfterFailures: null,
      ...definition,
    },
  });
}

/** An engine that runs schedules, gets the signals of the storage, and is yet to be started. */
export async function makeScheduler(params: EngineParams = {}) {
  const made = await makeEngine({ concurrency: { cron: 100 }, getsSignals: true, ...params });
  const { storage, clock } = made;
  const anchor = clock.now();
  return {
    ...made,
    anchor,
    create: (overrides: ScheduleOverrides = {}) => createSchedule(storage, anchor, overrides),
    schedule: async (id: number): Promise<ScheduleRecord> => {
      const schedule = await storage.schedules.get({ tenant: "default", id });
      if (schedule === null) throw new Error(`there is no schedule ${id}`);
      return schedule;
    },
    runs: (id?: number) => readRuns(storage, id),
    /** The outcome of each due time of a schedule, by how long after the start it was due. */
    story: async (id?: number): Promise<string[]> =>
      (await readRuns(storage, id)).map(
        ({ status, firstDueAt, dueAt, moments }) =>
          `${status} ${span(firstDueAt - anchor, dueAt - anchor)}${moments === 1 ? "" : ` ×${moments}`}`,
      ),
  };
}

function span(first: number, last: number): string {
  return first === last ? `${last / SECOND}` : `${first / SECOND}–${last / SECOND}`;
}

/** Oldest first. */
async function readRuns(storage: Storage, schedule?: number): Promise<RunRecord[]> {
  const runs: RunRecord[] = [];
  let cursor: { cursor?: number } = {};
  for (;;) {
    const page = await storage.schedules.listRuns({
      tenant: "default",
      limit: 1_000,
      ...(schedule === undefined ? {} : { schedule }),
      ...cursor,
    });
    runs.push(...page.runs);
    if (page.nextCursor === null) return runs.reverse();
    cursor = { cursor: page.nextCursor };
  }
}

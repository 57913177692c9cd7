import type { Settlement } from "../../../model/outcome.ts";
import { DEFAULT_RETRY_POLICY } from "../../../model/retry-policy.ts";
import type {
  Fire,
  FiredSchedule,
  FireParams,
  ListRunsParams,
  NewRun,
  NewSchedule,
  NewTask,
  RunRecord,
  ScheduleDefinition,
  ScheduleRecord,
  StoredNotification,
} from "../../storage.ts";
import { AGENT, NODE, newTask, only, TENANT, type World } from "../world.ts";

export const HOUR = 60 * 60 * 1_000;

/** A definition that fires every hour. */
export function newDefinition(overrides: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
  return {
    name: null,
    agent: AGENT,
    work: { kind: "message", message: "look around" },
    phrase: "every hour",
    rule: { kind: "every", everyMs: HOUR, tz: "UTC" },
    anchorAt: 0,
    conversationId: null,
    sessionKey: null,
    postToSession: false,
    deleteAfterRun: false,
    retryPolicy: DEFAULT_RETRY_POLICY,
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
    ...overrides,
  };
}

export function create(
  world: World,
  {
    definition,
    ...rest
  }: Partial<Omit<NewSchedule, "definition">> & { definition?: Partial<ScheduleDefinition> } = {},
): Promise<ScheduleRecord> {
  return world.storage.schedules.create({
    tenant: TENANT,
    definition: newDefinition(definition),
    status: "active",
    nextFireAt: world.clock.now(),
    source: null,
    ...rest,
  });
}

/** Creates a one-time schedule that is due now. */
export function createOnce(
  world: World,
  definition: Partial<ScheduleDefinition> = {},
): Promise<ScheduleRecord> {
  const rule = { kind: "once", atMs: world.clock.now(), phrase: "now", tz: "UTC" } as const;
  return create(world, { definition: { rule, ...definition } });
}

let runs = 0;

/** A run that fires now. */
export function running(
  world: World,
  schedule: ScheduleRecord,
  { task, ...rest }: Partial<Omit<NewRun & { status: "running" }, "task">> & { task?: Partial<NewTask> } = {},
): NewRun {
  runs += 1;
  const dueAt = rest.dueAt ?? world.clock.now();
  const made = {
    origin: "run",
    schedule: schedule.id,
    tenant: schedule.tenant,
    agent: schedule.agent,
    ...task,
  } as const;
  return {
    status: "running",
    firstDueAt: dueAt,
    moments: 1,
    forced: false,
    requestId: `req-${runs}`,
    replaces: false,
    task: newTask(made),
    ...rest,
    dueAt,
  };
}

export function unfired(status: "skipped" | "missed", dueAt: number, moments = 1): NewRun {
  const firstDueAt = dueAt - (moments - 1) * HOUR;
  return { status, reason: `was ${status}`, dueAt, firstDueAt, moments, forced: false };
}

/** Fires a schedule at its current revision. */
export async function fire(
  world: World,
  { id, tenant }: ScheduleRecord,
  given: Partial<Fire>,
  bounded: Pick<FireParams, "bounds"> = {},
): Promise<FiredSchedule> {
  const schedule = await world.storage.schedules.get({ tenant, id });
  const { revision = 0, nextFireAt = null } = schedule ?? {};
  const whole = { tenant, id, revision, runs: [], nextFireAt, pauses: null, ...given };
  return only(await world.storage.schedules.fire({ fires: [whole], ...bounded }));
}

export async function read(world: World, { tenant, id }: ScheduleRecord): Promise<ScheduleRecord> {
  const schedule = await world.storage.schedules.get({ tenant, id });
  if (schedule === null) throw new Error(`There is no schedule ${id}.`);
  return schedule;
}

export async function runsOf(world: World, params: Partial<ListRunsParams> = {}): Promise<RunRecord[]> {
  const { runs } = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 100, ...params });
  return runs;
}

export async function readNotifications(world: World, after = 0): Promise<StoredNotification[]> {
  return (await world.storage.notifications.read({ after, limit: 1_000 })).notifications;
}

export async function runOnce(world: World, settlement: Settlement, summary?: string): Promise<void> {
  const { token, task } = only(await world.claim());
  const finishes = [{ seq: task.seq, token, settlement, ...(summary === undefined ? {} : { summary }) }];
  await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
}

export const DONE: Settlement = { to: "done", result: "all quiet" };
export const FAILED: Settlement = { to: "failed", error: "no luck" };

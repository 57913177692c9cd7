import { doubledMoments, unaccountedMoments } from "../../schedules/account-for-moments.ts";
import { canonicalForm } from "../../schedules/canonical-form.ts";
import { runsLeft } from "../../schedules/limits.ts";
import { isoText } from "../../schedules/moment-text.ts";
import { countMoments, nextMoment } from "../../schedules/moments.ts";
import type { DueRow, ScheduleRecord, Storage } from "../../storage/storage.ts";

const PAGE = 200;
/** The most runs of one schedule that are checked: one that is due every second has a million in a fortnight. */
const RUNS_MAX = 10_000;
/** A due time that is later than this and has no run counts as overdue. */
const OVERDUE_MS = 10_000;
/** Runs near the end of their retention may be deleted during the check. */
const RETENTION_MARGIN_MS = 60 * 60 * 1_000;
const NAMED_MAX = 5;
/** How often the check of a schedule is retried if it fires meanwhile. */
const TRIES_MAX = 5;

export interface ScheduleExamination {
  /** How many schedules were checked, and how many due times their runs cover. */
  readonly schedules: number;
  readonly moments: number;
  readonly findings: readonly string[];
}

export interface ExamineSchedulesOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly now: number;
  readonly runRetentionMs: number;
  /** Whether this node fires schedules right now. */
  readonly fires: boolean;
  /** Whether the tenant is disabled: due times since the last run of a schedule have no run yet. */
  readonly disabled: boolean;
  /** Awaited after each schedule, and after each page of its runs. If it throws, the examination ends. */
  readonly onSlice: (schedules: number) => Promise<void>;
}

/** Checks that every due time since the last change of its schedule has exactly one run. */
export async function examineSchedules(options: ExamineSchedulesOptions): Promise<ScheduleExamination> {
  const { tenant, storage } = options;
  const findings: string[] = [];
  let schedules = 0;
  let moments = 0;
  for (let after = 0; ; ) {
    const page = await storage.schedules.page({ tenant, after, limit: PAGE });
    for (const schedule of page) {
      const examined = await examineAsItIs(schedule, options);
      schedules += 1;
      moments += examined.moments;
      findings.push(...examined.findings);
      await options.onSlice(1);
    }
    const last = page.at(-1);
    if (last === undefined) return { schedules, moments, findings };
    after = last.id;
  }
}

/** Ignores findings of a schedule that was deleted or edited meanwhile; checks one that has fired meanwhile again. */
async function examineAsItIs(
  read: ScheduleRecord,
  options: ExamineSchedulesOptions,
): Promise<Omit<ScheduleExamination, "schedules">> {
  let schedule = read;
  for (let tries = 1; ; tries += 1) {
    const examined = await examineSchedule(schedule, options);
    if (examined.findings.length === 0) return examined;
    const now = await options.storage.schedules.get(schedule);
    if (now?.updatedAt !== schedule.updatedAt) return { ...examined, findings: [] };
    if (now.revision === schedule.revision || tries === TRIES_MAX) return examined;
    schedule = now;
  }
}

async function examineSchedule(
  schedule: ScheduleRecord,
  options: ExamineSchedulesOptions,
): Promise<Omit<ScheduleExamination, "schedules">> {
  const { now, runRetentionMs, fires, disabled } = options;
  const since = Math.max(schedule.updatedAt, now - runRetentionMs + RETENTION_MARGIN_MS);
  const { rows, from } = await rowsSince(schedule, since, options);
  const { rule, anchorAt: anchor, nextFireAt, lastDueAt } = schedule;
  const name = `Schedule #${schedule.id} (${canonicalForm(rule)})`;
  const findings: string[] = [];
  if (schedule.status === "active" && nextFireAt !== null) {
    const missing = unaccountedMoments({
      rule,
      anchor,
      after: from,
      before: disabled ? Math.min(nextFireAt, (lastDueAt ?? from) + 1) : nextFireAt,
      spans: rows,
      limit: NAMED_MAX,
    });
    findings.push(...missing.map((moment) => `${name}: ${isoText(rule.tz, moment)} has no run.`));
    // A schedule that is due once and could not run at its due time is due when it was resumed.
    if (rule.kind !== "once" && nextMoment(rule, { after: nextFireAt - 1, anchor }) !== nextFireAt)
      findings.push(
        `${name}: ${isoText(rule.tz, nextFireAt)} is stored as the next due time, but the rule does not have it.`,
      );
    if (fires && now - nextFireAt > OVERDUE_MS)
      findings.push(
        `${name}: ${isoText(rule.tz, nextFireAt)} is overdue, and no node fires it: none runs, or more schedules of its tenant are due than the nodes can fire.`,
      );
  }
  findings.push(...boundFaults(schedule).map((fault) => `${name} ${fault}`));
  const doubled = doubledMoments(rows).slice(0, NAMED_MAX);
  findings.push(...doubled.map((moment) => `${name}: ${isoText(rule.tz, moment)} has two runs.`));
  return { moments: rows.reduce((sum, row) => sum + row.moments, 0), findings };
}

/** Faults of the bounds of an active schedule: the firing that reaches a bound should have completed it. */
function boundFaults(schedule: ScheduleRecord): string[] {
  const { status, rule, nextFireAt, untilAt, maxRuns, runCount } = schedule;
  if (status !== "active" || rule.kind === "once") return [];
  return [
    ...(nextFireAt === null ? ["is active, but has no next due time."] : []),
    ...(runsLeft(schedule) === 0 ? [`is active, but has had ${runCount} runs of at most ${maxRuns}.`] : []),
    ...(nextFireAt !== null && untilAt !== null && nextFireAt > untilAt
      ? [`is next due at ${isoText(rule.tz, nextFireAt)}, which is after its \`until\`.`]
      : []),
  ];
}

/** The runs with due times after `from`, in order. `from` is later than `since` if there would be too many. */
async function rowsSince(
  { tenant, id, ...schedule }: ScheduleRecord,
  since: number,
  { storage, now, onSlice }: ExamineSchedulesOptions,
): Promise<{ rows: DueRow[]; from: number }> {
  const from = startOfNewest(schedule, since, now);
  const rows: DueRow[] = [];
  // A clock that was set back leaves runs in the future, at most as many as there are in the past.
  while (rows.length < 2 * RUNS_MAX) {
    const after = rows.at(-1)?.dueAt ?? from;
    const page = await storage.schedules.dueRows({ tenant, id, after, limit: PAGE });
    rows.push(...page);
    if (page.length < PAGE) break;
    await onSlice(0);
  }
  return { rows, from };
}

/** The time since which a rule has at most `RUNS_MAX` due times, which are at least a second apart. */
function startOfNewest(
  { rule, anchorAt: anchor }: Pick<ScheduleRecord, "rule" | "anchorAt">,
  since: number,
  now: number,
): number {
  const isFew = (after: number) =>
    countMoments(rule, { after, anchor, until: now, max: RUNS_MAX }) < RUNS_MAX;
  let spanMs = RUNS_MAX * 1_000;
  while (now - spanMs > since && isFew(Math.max(now - 2 * spanMs, since))) spanMs *= 2;
  return Math.max(now - spanMs, since);
}

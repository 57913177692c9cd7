import { doubledMoments, unaccountedMoments } from "../schedules/account-for-moments.ts";
import { canonicalForm } from "../schedules/canonical-form.ts";
import { isoText } from "../schedules/moment-text.ts";
import { nextMoment } from "../schedules/moments.ts";
import type { RunRecord, ScheduleRecord, Storage } from "../storage/storage.ts";

const PAGE = 200;
/** How far back the runs of one schedule are looked at: one that is due every second has a million in a fortnight. */
const RUNS_MAX = 10_000;
/** A moment that is due for longer than this and has no row is nobody's. */
const OVERDUE_MS = 10_000;
/** Runs of the last moments within their retention may be about to go. */
const RETENTION_MARGIN_MS = 60 * 60 * 1_000;
const NAMED_MAX = 5;

export interface ScheduleExamination {
  /** How many were looked at, and how many rows for their moments were found. */
  readonly schedules: number;
  readonly moments: number;
  readonly findings: readonly string[];
}

export interface ExamineSchedulesOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly now: number;
  readonly runRetentionMs: number;
  /** Whether moments fire right now. */
  readonly fires: boolean;
  /** Whether the tenant is disabled: what came since a schedule was looked at last has no row yet. */
  readonly disabled: boolean;
  /** Waited for after each schedule that was looked at, and each page of its runs; what it throws ends the examination. */
  readonly onSlice: (schedules: number) => Promise<void>;
}

/** Proves, from the last change of each schedule on, that every moment has its row, and one only. */
export async function examineSchedules(options: ExamineSchedulesOptions): Promise<ScheduleExamination> {
  const { tenant, storage } = options;
  const findings: string[] = [];
  let schedules = 0;
  let moments = 0;
  for (let after = 0; ; ) {
    const page = await storage.schedules.page({ tenant, after, limit: PAGE });
    for (const schedule of page) {
      const examined = await examineSchedule(schedule, options);
      schedules += 1;
      moments += examined.moments;
      if (examined.findings.length > 0 && (await isAsRead(storage, schedule)))
        findings.push(...examined.findings);
      await options.onSlice(1);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return { schedules, moments, findings };
    after = last.id;
  }
}

/** One that was deleted or changed while its rows were read says nothing. */
async function isAsRead(storage: Storage, { tenant, id, updatedAt }: ScheduleRecord): Promise<boolean> {
  return (await storage.schedules.get({ tenant, id }))?.updatedAt === updatedAt;
}

async function examineSchedule(
  schedule: ScheduleRecord,
  { storage, now, runRetentionMs, fires, disabled }: ExamineSchedulesOptions,
): Promise<Omit<ScheduleExamination, "schedules">> {
  const since = Math.max(schedule.updatedAt, now - runRetentionMs + RETENTION_MARGIN_MS);
  const { runs, from } = await runsSince(storage, schedule, since);
  const { rule, anchorAt: anchor, nextFireAt, lastDueAt } = schedule;
  const name = `Schedule #${schedule.id} (${canonicalForm(rule)})`;
  const findings: string[] = [];
  if (schedule.status === "active" && nextFireAt !== null) {
    const missing = unaccountedMoments({
      rule,
      anchor,
      after: from,
      before: disabled ? Math.min(nextFireAt, (lastDueAt ?? from) + 1) : nextFireAt,
      spans: runs,
      limit: NAMED_MAX,
    });
    findings.push(...missing.map((moment) => `${name}: ${isoText(rule.tz, moment)} has left no run.`));
    // One that could not run when its moment came is due when it was resumed.
    if (rule.kind !== "once" && nextMoment(rule, { after: nextFireAt - 1, anchor }) !== nextFireAt)
      findings.push(`${name}: ${isoText(rule.tz, nextFireAt)} is next, but is no moment of it.`);
    if (fires && now - nextFireAt > OVERDUE_MS)
      findings.push(`${name}: ${isoText(rule.tz, nextFireAt)} is overdue, and nobody fires it.`);
  }
  const doubled = doubledMoments(runs).slice(0, NAMED_MAX);
  findings.push(...doubled.map((moment) => `${name}: ${isoText(rule.tz, moment)} has two runs.`));
  return { moments: runs.reduce((sum, run) => sum + run.moments, 0), findings };
}

/** The rows of moments after `since`; where there are too many, `from` is where they begin to be complete. */
async function runsSince(
  storage: Storage,
  { tenant, id }: ScheduleRecord,
  since: number,
): Promise<{ runs: RunRecord[]; from: number }> {
  const runs: RunRecord[] = [];
  let looked = 0;
  for (let cursor: number | null | undefined; cursor !== null && looked < RUNS_MAX; ) {
    const page = await storage.schedules.listRuns({
      tenant,
      schedule: id,
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    looked += page.runs.length;
    const moments = page.runs.filter(({ forced }) => !forced);
    runs.push(...moments.filter(({ dueAt }) => dueAt > since));
    // Rows are written in the order of their moments, but for a clock that was set back.
    const isPast = moments.length > 0 && moments.every(({ dueAt }) => dueAt <= since);
    cursor = isPast ? null : page.nextCursor;
    if (cursor !== null && looked >= RUNS_MAX)
      return { runs, from: Math.max(since, runs.at(-1)?.dueAt ?? since) };
  }
  return { runs, from: since };
}

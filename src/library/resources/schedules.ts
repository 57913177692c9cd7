import type { ScheduleRunner } from "../../engine/schedules/schedule-ticker.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { NotificationLog } from "../../events/notification-log.ts";
import type { CreatedSchedule, LocalSchedules, NewScheduleInput } from "../../interface/schedules.ts";
import type { SizedReading } from "../../interface/tasks.ts";
import { RotaError } from "../../model/errors.ts";
import { invalidField, preview } from "../../model/input/field-checks.ts";
import { refuseMasks } from "../../model/input/masked-input.ts";
import type { Provenance } from "../../model/provenance.ts";
import type { Redactor } from "../../model/redactor.ts";
import { PREVIEW_COUNT } from "../../model/schedule.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { isSerialId } from "../../model/serial-id.ts";
import { toSeconds } from "../../model/text/epoch-seconds.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { canonicalForm } from "../../schedules/canonical-form.ts";
import { nextMoment } from "../../schedules/moments.ts";
import { checkPosting, parseNewSchedule } from "../../schedules/new-schedule-input.ts";
import { openSpans } from "../../schedules/open-spans.ts";
import { previewSteps } from "../../schedules/preview.ts";
import { parsePreviewInput } from "../../schedules/preview-input.ts";
import {
  parseRunFilter,
  parseRunMode,
  parseScheduleFilter,
  parseUpcomingFilter,
} from "../../schedules/run-filter-input.ts";
import { type ParsedScheduleChanges, parseScheduleChanges } from "../../schedules/schedule-changes-input.ts";
import { scheduleCursorText } from "../../schedules/schedule-cursor.ts";
import { localZone } from "../../schedules/zone.ts";
import { letOthersThrough } from "../../services/large-input.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { WorkTurns } from "../../services/work-turns.ts";
import { type NewSchedule, OLDEST_NAMED, type ScheduleRecord, type Storage } from "../../storage/storage.ts";
import { tooManyOfMaker } from "../../storage/too-many-of-maker.ts";
import { forAgent, namesOther } from "../agent-scope.ts";
import type { CallerBounds } from "../caller-bounds.ts";
import { type Changes, editSchedule } from "./edit-schedule.ts";
import type { EndedTasks } from "./ended-tasks.ts";
import { plannedSchedule } from "./planned-schedule.ts";
import { toRunPage } from "./runs.ts";
import { schedulePage } from "./schedule-page.ts";
import { toScheduledTask } from "./schedule-view.ts";
import { pauseOfKey } from "./schedules-of-key.ts";
import type { StoredQuota } from "./stored-quota.ts";
import { upcomingMoments } from "./upcoming-moments.ts";

/** How many due times that have already run are skipped in one step; the next firing skips more. */
const TAKEN_MAX = 1_000;
/**
 * How often an edit is retried because the schedule changed meanwhile. Its runs change it a few times per due time, and due
 * times are at least a second apart: no edit loses this often by chance.
 */
const EDIT_TRIES_MAX = 20;

/** Runs deleted in one transaction, so that a schedule with very many does not block other work for long. */
const DELETE_SLICE = 500;

export interface SchedulesOptions {
  readonly scope: Scope;
  /** Who calls, and in which task. */
  readonly provenance: Provenance;
  readonly bounds: CallerBounds;
  /** The bounds of another caller, such as a task whose result makes a schedule. */
  readonly boundsOf: (provenance: Provenance) => Promise<CallerBounds>;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly runner: ScheduleRunner;
  readonly eventLog: EventLog;
  readonly notificationLog: NotificationLog;
  readonly ended: EndedTasks;
  /** Includes agents that other nodes created. */
  readonly isKnown: (agent: string) => Promise<boolean>;
  /** The ids of the agents that this node knows. */
  readonly agentIds: () => readonly string[];
  readonly timeoutMaxMs: () => number;
  readonly redactor: () => Redactor;
  /** Throws `invalid_field`, naming the field, for a URL that must not be called. */
  readonly checkCallback: (url: string, field: "callback_url") => Promise<void>;
  /** How many schedules may be active or paused; null: no limit. */
  readonly maxSchedules: () => Promise<number | null>;
  /** Refuses runs beyond the storage quota of the tenant. */
  readonly quota: StoredQuota;
  /** Runs long computations in steps, between which other work gets its turn. */
  readonly work: WorkTurns;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
}

export interface CreateOptions {
  /** Identifies the origin: the schedule that was created before from the same source is returned, if there is one. */
  readonly source?: string;
  /** Whose schedule it is, instead of the caller's. */
  readonly provenance?: Provenance;
  /** The bounds of its agent apply, too. */
  readonly isWrit?: boolean;
}
type Home = Pick<ScheduleRecord, "sessionKey" | "conversationId">;

/** The schedules API with options that only this process uses. */
export interface WrittenSchedules extends LocalSchedules {
  create(input: NewScheduleInput, options?: CreateOptions): Promise<CreatedSchedule>;
  /** `sparesRunning`: running tasks are not cancelled. */
  delete(id: number, options?: { readonly sparesRunning?: boolean }): Promise<{ readonly deleted: true }>;
}

/** The schedules API of one tenant or agent. */
export function createSchedules(options: SchedulesOptions): WrittenSchedules {
  const { scope, bounds, storage, storageClock, runner, eventLog, notificationLog, ended } = options;
  const { isKnown, agentIds, timeoutMaxMs, redactor, checkCallback, maxSchedules, quota, work, checkOpen } =
    options;

  const { tenant } = scope;

  async function find(id: number, { onSize }: SizedReading = {}): Promise<ScheduleRecord> {
    if (!isSerialId(id)) throw notFound();
    await onSize?.((await storage.schedules.size({ tenant, id })) ?? 0);
    const record = ownRecord(scope, await storage.schedules.get({ tenant, id }));
    if (record === null) throw notFound();
    return record;
  }

  /** Calls `checkOpen` after the read, during which this node may have begun to stop. */
  async function checkAgent(agent: string): Promise<void> {
    if (!(await isKnown(agent))) throw agentNotFound(agent, agentIds());
    checkOpen();
  }

  /** Retries with the current schedule if it changed between read and write, so that an edit undoes no concurrent change. */
  async function edit(id: number, wanted: ParsedScheduleChanges): Promise<ScheduleRecord> {
    await storageClock.sync();
    let wish = wanted;
    for (let tries = 0; tries < EDIT_TRIES_MAX; tries += 1) {
      const record = await find(id);
      const bounded = withinBounds(record, wish);
      const changes = narrowed(
        record,
        await pastTaken(record, editSchedule(record, bounded, storageClock.now())),
      );
      if (Object.keys(changes).length === 0) return record;
      const { revision } = record;
      // A due time that has passed must fire before the edit. No node may have fired it yet, and a pause or another rule would
      // leave it without a run.
      const unlessDue = changes.status !== undefined || changes.nextFireAt !== undefined;
      const max = await maxSchedules();
      const ofMaker = bounds.scheduleLimit();
      const edited = {
        tenant,
        id,
        revision,
        changes,
        unlessDue,
        maxSchedules: max,
        ...(ofMaker && { ofMaker }),
      };
      const updated = await storage.schedules.update(edited);
      if (updated !== null) return updated;
      if (!unlessDue) continue;
      const { paused } = await runner.firePastDue(record);
      // It was paused for a fault that this edit may correct, and not by a caller: so the edit resumes it.
      if (paused && wish.schedule !== undefined) wish = { ...wish, status: wish.status ?? "active" };
    }
    throw new RotaError("conflict", `schedule ${id} keeps changing while it is edited: try again`);
  }

  /** With another message, the runs of a schedule do what the caller says. So they reach no further than the caller. */
  function narrowed({ provenance, agent }: ScheduleRecord, changes: Changes): Changes {
    const { reach } = options.provenance;
    const isOther =
      changes.work !== undefined || changes.metadata !== undefined || (changes.agent ?? agent) !== agent;
    if (!isOther || reach === undefined || provenance === null) return changes;
    const before = provenance.reach ?? reach;
    return {
      ...changes,
      provenance: { ...provenance, reach: reach.filter((each) => before.includes(each)) },
    };
  }

  /** The edit, with an earlier end if the schedule would last longer than the caller may let it. */
  function withinBounds(record: ScheduleRecord, wish: ParsedScheduleChanges): ParsedScheduleChanges {
    const changes = editSchedule(record, wish, storageClock.now());
    const isNew = changes.rule !== undefined || changes.untilAt !== undefined || changes.status === "active";
    if (!isNew) return wish;
    const after = { ...record, ...changes };
    const { untilAt } = bounds.checkSchedule(after, { phrase: after.phrase });
    return untilAt === after.untilAt ? wish : { ...wish, fields: { ...wish.fields, untilAt } };
  }

  async function store(schedule: NewSchedule): Promise<ScheduleRecord> {
    const max = await maxSchedules();
    // This node may have begun to stop, or the tenant may have been deleted, during the read.
    checkOpen();
    return storage.schedules.create({ ...schedule, maxSchedules: max });
  }

  /** Skips due times that have already run. They can only be next if the clock was set back. */
  async function pastTaken(record: ScheduleRecord, changes: Changes): Promise<Changes> {
    const { rule, anchorAt, untilAt, nextFireAt, lastDueAt } = { ...record, ...changes };
    if (changes.nextFireAt === undefined || nextFireAt === null || (lastDueAt ?? 0) < nextFireAt)
      return changes;
    const { id } = record;
    const rows = await storage.schedules.dueRows({ tenant, id, after: nextFireAt - 1, limit: TAKEN_MAX });
    const dueAts = rows.filter(({ started }) => started).map(({ dueAt }) => dueAt);
    const schedule = { rule, anchorAt, untilAt, nextFireAt, taken: { dueAts, isComplete: true } };
    return { ...changes, nextFireAt: openSpans(schedule, nextFireAt - 1).nextFireAt };
  }

  /** What is planned within a task that is part of a session or a conversation returns there, unless it names its own. */
  async function homeOf({ sessionKey, conversationId }: Home, { within }: Provenance): Promise<Home> {
    if (within === null || sessionKey !== null || conversationId !== null)
      return { sessionKey, conversationId };
    const task = await storage.tasks.get({ tenant, id: within.taskId });
    return { sessionKey: task?.session ?? null, conversationId: task?.spec.conversationId ?? null };
  }

  /**
   * The deletion of a key pauses its schedules. One that the key makes or resumes at that moment may come too late for it, and is
   * paused here.
   */
  async function unlessKeyGone(record: ScheduleRecord): Promise<ScheduleRecord> {
    const keyId = record.provenance?.createdBy.keyId ?? null;
    if (keyId === null || record.status !== "active") return record;
    if ((await storage.keys.get({ tenant, id: keyId })) !== null) return record;
    await pauseOfKey(storage, { tenant, id: keyId });
    return find(record.id);
  }

  function expectNext({ nextFireAt }: ScheduleRecord): void {
    if (nextFireAt !== null) runner.expect(nextFireAt);
  }

  /** All checks of a create before its transaction. */
  async function prepare(
    given: NewScheduleInput,
    { source, provenance, isWrit = false }: CreateOptions = {},
  ): Promise<NewSchedule> {
    const input = forAgent(scope, given, "agent");
    checkOpen();
    await storageClock.sync();
    const now = storageClock.now();
    const parsed = parseNewSchedule(input, { now, tz: localZone(), timeoutMaxMs: timeoutMaxMs() });
    refuseMasks(parsed, redactor());
    const { enabled, ...described } = parsed;
    const definition = { ...described, ...(await homeOf(described, provenance ?? options.provenance)) };
    checkPosting(definition);
    const own = provenance === undefined ? bounds : await options.boundsOf(provenance);
    const agent = isWrit ? definition.agent : undefined;
    const { untilAt } = own.checkSchedule(definition, { agent, phrase: definition.phrase });
    const nextFireAt = enabled ? nextMoment(definition.rule, { after: now, anchor: now }) : null;
    if (untilAt !== definition.untilAt && untilAt !== null && nextFireAt !== null && nextFireAt > untilAt)
      throw dueTooLate(definition.phrase, untilAt);
    const ofMaker = own.scheduleLimit(agent);
    await letOthersThrough(input);
    await checkAgent(definition.agent);
    if (definition.callbackUrl !== null) await checkCallback(definition.callbackUrl, "callback_url");
    return {
      tenant,
      definition: { ...definition, untilAt, anchorAt: now },
      status: enabled ? "active" : "paused",
      nextFireAt,
      source: source ?? null,
      provenance: provenance ?? options.provenance,
      ...(ofMaker && { ofMaker }),
    };
  }

  return {
    async create(input, creating) {
      const record = await unlessKeyGone(await store(await prepare(input, creating)));
      expectNext(record);
      await letOthersThrough(input);
      return { scheduled_task: toScheduledTask(record, redactor()), normalized: canonicalForm(record.rule) };
    },

    async dryRun(input) {
      const schedule = await prepare(input);
      const { rule, anchorAt, untilAt, maxRuns } = schedule.definition;
      const count = Math.min(PREVIEW_COUNT.default, maxRuns ?? PREVIEW_COUNT.default);
      const range = { from: anchorAt, count, untilAt };
      const { kind: _kind, ...preview } = await work.run(previewSteps(rule, range));
      const planned = {
        dryRun: true,
        scheduled_task: plannedSchedule(schedule, redactor()),
        ...preview,
      } as const;
      const { ofMaker: limit } = schedule;
      if (limit === undefined) return planned;
      const made = await storage.schedules.ofMaker({ tenant, limit });
      if (made.length >= limit.max) throw tooManyOfMaker(limit, made.slice(0, OLDEST_NAMED));
      return { ...planned, left: { maxActiveSchedules: limit.max - made.length } };
    },

    async preview(input) {
      const { rule, ...range } = parsePreviewInput(input, { now: storageClock.now(), tz: localZone() });
      return work.run(previewSteps(rule, range));
    },

    async list(filter = {}) {
      const { agent = filter.agent } = scope;
      const wanted = parseScheduleFilter({ ...filter, ...(agent === undefined ? {} : { agent }) });
      if (namesOther(scope, filter.agent)) return { schedules: [], count: 0, next_cursor: null };
      const { found, next } = await schedulePage(storage, tenant, wanted);
      return {
        schedules: found.map((record) => toScheduledTask(record, redactor())),
        count: found.length,
        next_cursor: next === null ? null : scheduleCursorText(next),
      };
    },

    async get(id, reading) {
      return toScheduledTask(await find(id, reading), redactor());
    },

    async update(id, changes, reading) {
      if (isSerialId(id)) await reading?.onSize?.((await storage.schedules.size({ tenant, id })) ?? 0);
      checkOpen();
      const wanted = parseScheduleChanges(changes, { timeoutMaxMs: timeoutMaxMs() });
      await letOthersThrough(changes);
      refuseMasks(wanted.fields, redactor());
      const { agent, callbackUrl = null } = wanted.fields;
      if (agent !== undefined) {
        await find(id);
        forAgent(scope, { agent }, "agent");
        await checkAgent(agent);
      }
      if (callbackUrl !== null) await checkCallback(callbackUrl, "callback_url");
      await notificationLog.tried;
      const edited = await edit(id, wanted);
      const isMaker = edited.provenance?.createdBy.keyId === options.provenance.createdBy.keyId;
      const record = isMaker ? await unlessKeyGone(edited) : edited;
      expectNext(record);
      return toScheduledTask(record, redactor());
    },

    async delete(id, { sparesRunning = false } = {}) {
      await notificationLog.tried;
      if (!isSerialId(id)) throw notFound();
      if (scope.agent !== undefined) await find(id);
      const params = { tenant, id, sparesRunning, limit: DELETE_SLICE };
      for (let slices = 0; ; slices += 1) {
        const deleted = await storage.schedules.delete(params);
        // After the first slice: another caller has done the rest.
        if (deleted === null && slices === 0) throw notFound();
        ended.handle(deleted?.cancelled ?? []);
        if (deleted?.more !== true) return { deleted: true };
      }
    },

    async run(id, runOptions, reading) {
      checkOpen();
      const mode = parseRunMode(runOptions);
      if (!isSerialId(id)) throw notFound();
      if (scope.agent !== undefined) await find(id);
      await reading?.onSize?.((await storage.schedules.size({ tenant, id })) ?? 0);
      await Promise.all([eventLog.tried, notificationLog.tried]);
      // Here the caller gets `quota_exceeded`; a run at a due time is stored with that reason instead.
      // What is due would run without the caller as well.
      const counted = mode === "force" ? bounds.forRunAgain() : undefined;
      const answer = await quota.storing(tenant, [], () =>
        runner.runNow({ tenant, id, mode, ...(counted && { bounds: counted }) }),
      );
      if (answer === null) throw notFound();
      return answer.ran
        ? { ok: true, ran: true, run_id: answer.runId }
        : { ok: true, ran: false, reason: answer.reason };
    },

    async runs(id, filter = {}) {
      const params = parseRunFilter({ ...filter });
      await find(id);
      return toRunPage(await storage.schedules.listRuns({ ...scope, schedule: id, ...params }), redactor());
    },

    async status() {
      const { nextFireAt, ...counts } = await storage.schedules.status({ tenant });
      return { ...counts, next_fire_at: toSeconds(nextFireAt) };
    },

    async upcoming(filter = {}) {
      const range = parseUpcomingFilter({ ...filter }, storageClock.now());
      return upcomingMoments({ storage, work }, tenant, range);
    },
  };
}

function dueTooLate(phrase: string, untilAt: number): RotaError {
  return invalidField(
    "schedule",
    `"${phrase}" is first due after ${rfc3339(untilAt)}, when schedules of this caller end (\`scheduleTtlDays\`): write an earlier one`,
  );
}

function notFound(): RotaError {
  return new RotaError("not_found", "schedule not found");
}

export function agentNotFound(agent: string, known: readonly string[]): RotaError {
  const nearest = nearestName(agent, known);
  const hint =
    nearest === undefined
      ? "create it first (`rota agents create`, `POST /v1/agents`, the configuration, or a worker), or leave `agent` out"
      : `did you mean "${nearest}"?`;
  return new RotaError("not_found", `agent "${preview(agent)}" not found: ${hint}`, {
    details: { field: "agent" },
  });
}

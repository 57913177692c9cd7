import { createHash } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { TaskWaiter } from "../../events/task-waiter.ts";
import type { LocalTasks, SubmittedManyTask, TaskFilter } from "../../interface/tasks.ts";
import { NO_QUEUE_LIMIT } from "../../model/agent.ts";
import type { Keyed, SubmittedBatch } from "../../model/batch.ts";
import { RotaError } from "../../model/errors.ts";
import type { BatchInput } from "../../model/input/batch-input.ts";
import { atIndex, parseBatchSteps, parseTaskInputs } from "../../model/input/batch-input.ts";
import { type Fields, invalidField, optionalBoolean } from "../../model/input/field-checks.ts";
import type { SubmitInput, SubmittedTask } from "../../model/input/submit-input.ts";
import { parseTaskFilter } from "../../model/input/task-filter-input.ts";
import { type ParsedTask, parseTaskInput } from "../../model/input/task-input.ts";
import { checkWait } from "../../model/input/wait-input.ts";
import { enclosing, type Provenance, withProvenance } from "../../model/provenance.ts";
import type { Redactor } from "../../model/redactor.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { taskCursorText } from "../../model/task-cursor.ts";
import { looksLikeTaskId } from "../../model/task-id.ts";
import { type TaskRecord, toTask, toTaskRow } from "../../model/task-record.ts";
import { canonicalJson, canonicalSteps } from "../../model/text/canonical-json.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { isLargeInput } from "../../services/large-input.ts";
import type { WorkTurns } from "../../services/work-turns.ts";
import { rejectionError } from "../../storage/admission.ts";
import { namedDependency } from "../../storage/dependency-error.ts";
import {
  type AdmissionLimits,
  ALL_AGENTS,
  type BlockingDependency,
  type CancelledTask,
  type InsertedTask,
  type ListTasksParams,
  type NewBatch,
  type NewTask,
  type Storage,
  type SubmitBounds,
  type TaskSituation,
} from "../../storage/storage.ts";
import { boundsLeft } from "../../storage/submit-bounds.ts";
import { forDelegate, namesOther } from "../agent-scope.ts";
import type { CallerBounds } from "../caller-bounds.ts";
import { batchForAgent, checkNeighbours } from "./agent-submits.ts";
import { readBatch, stillOpen, storedBatchId, toBatch } from "./batches.ts";
import { cancelTree } from "./cancel-tree.ts";
import type { EndedTasks } from "./ended-tasks.ts";
import { explainTask, type ProcessSituation } from "./explain-task.ts";
import { type ListedPage, listPage, listRowPage } from "./list-page.ts";
import { plannedTask } from "./planned-task.ts";
import type { StoredQuota } from "./stored-quota.ts";
import { inputAgain } from "./submit-again.ts";
import { submitWarnings } from "./submit-warnings.ts";
import { parentsFirst, withDependencies } from "./task-graph.ts";
import { readTaskLog } from "./task-log.ts";
import type { TaskParser } from "./task-parser.ts";

/** The most tasks of one `submitMany`. */
const SUBMIT_MANY_MAX = 10_000;

export interface TasksOptions {
  readonly scope: Scope;
  /** Who calls, and in which task. */
  readonly provenance: Provenance;
  readonly bounds: CallerBounds;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly eventLog: EventLog;
  readonly waiter: TaskWaiter;
  readonly limits: () => AdmissionLimits;
  /** How many tasks of the tenant may wait, as far as this node knows; null: no limit. */
  readonly maxQueued: () => number | null;
  /** Refuses tasks beyond the storage quota of the tenant. */
  readonly quota: StoredQuota;
  /** Runs long computations in steps, between which other work gets its turn. */
  readonly work: WorkTurns;
  readonly parse: TaskParser;
  /** Masks secrets in tasks that callers read, by the current configuration. */
  readonly redactor: () => Redactor;
  readonly storageNow: () => number;
  readonly newTaskId: () => string;
  readonly newBatchId: () => string;
  /** Throws `invalid_field`, naming the field, for a URL that must not be called. */
  readonly checkCallback: (url: string, field: "callbackUrl" | "batchCallbackUrl") => Promise<void>;
  /** What this process knows of a lane: its slots, its memory and its state. */
  readonly processSituation: (lane: string) => ProcessSituation;
  /** The labels that a worker needs to run an agent; undefined: none. */
  readonly requiredLabels: (agent: string) => Readonly<Record<string, string>> | undefined;
  /** How long a task waits if no live node has an executor for it. */
  readonly noExecutorMs: () => number;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
  /** Throws once the tenant is being deleted. */
  readonly checkNotGone: () => void;
  readonly ended: EndedTasks;
}

/** The canonical texts of large requests with idempotency keys, by request. */
type RequestTexts = ReadonlyMap<Fields, string>;
const NO_TEXTS: RequestTexts = new Map();

/** The tasks API of one tenant or agent. */
export function createTasks(options: TasksOptions): LocalTasks {
  const {
    scope,
    provenance,
    bounds,
    storage,
    engine,
    eventLog,
    waiter,
    limits,
    maxQueued,
    quota,
    work,
    parse,
    checkOpen,
  } = options;
  const { newTaskId, newBatchId, checkCallback, checkNotGone, ended, processSituation, redactor } = options;
  const { tenant } = scope;

  /** All checks of a submit before its transaction. `copied`: the input of a task of the caller, whose neighbours it has already had. */
  async function prepare(given: SubmitInput, { copied = false } = {}): Promise<NewTask> {
    const input = forDelegate(scope, given);
    checkOpen();
    const parsed = await parse((defaults) => parseTaskInput(input, defaults));
    if (!copied && scope.agent !== undefined) await checkOwn([parsed]);
    const large = largeRequests([parsed]);
    const [task] = newTasks([parsed], null, large.length === 0 ? NO_TEXTS : await writeInTurns(large));
    if (task === undefined) throw new Error("One task makes one.");
    if (task.callbackUrl !== null) {
      await checkCallback(task.callbackUrl, "callbackUrl");
      checkOpen();
    }
    return task;
  }

  async function submit(
    given: SubmitInput,
    copying: { readonly copied?: boolean } = {},
  ): Promise<SubmittedTask> {
    const task = await prepare(given, copying);
    const bounded = await bounds.forTasks([task]);
    if (eventLog.tried !== null) await eventLog.tried;
    checkNotGone();
    const inserted = await quota.storing(tenant, [task], () => insertOne(task, bounded));
    if (inserted.repeats === "other") throw await hideOthers(idempotencyConflict(inserted));
    if (inserted.rejection !== null) {
      throw queueFull(inserted.rejection, task, { ...limits(), maxTenant: maxQueued() });
    }
    const submitted = toSubmitted(inserted);
    if (!inserted.unserved) return submitted;
    return { ...submitted, ...(await submitWarnings(options, [task], [inserted])) };
  }

  function insertOne(task: NewTask, bounded: SubmitBounds | undefined): Promise<InsertedTask> {
    return bounded === undefined ? engine.intake.add(task) : insertBounded(task, bounded);
  }

  async function insertBounded(task: NewTask, bounded: SubmitBounds): Promise<InsertedTask> {
    const [inserted] = await engine.intake.addBounded([task], bounded);
    if (inserted === undefined) throw new Error("One task has one result.");
    return inserted;
  }

  /** Calls `checkOpen` after the reads, during which this node may have begun to stop. */
  async function checkOwn(parsed: readonly ParsedTask[]): Promise<void> {
    if (scope.agent === undefined) return;
    await checkNeighbours(storage, scope, parsed);
    checkOpen();
  }

  async function submitMany(inputs: readonly Keyed<SubmitInput>[]): Promise<SubmittedManyTask[]> {
    checkOpen();
    if (!Array.isArray(inputs) || inputs.length > SUBMIT_MANY_MAX) {
      throw invalidField("tasks", `\`tasks\` must be an array of at most ${SUBMIT_MANY_MAX}`);
    }
    const parsed = await parse((defaults) => parseTaskInputs(inputs, defaults));
    const { inserted } = await insertAll(parsed, null);
    return inserted.map((task) => ({ ...toSubmitted(task), ...rejectionOf(task) }));
  }

  async function submitBatch(given: BatchInput): Promise<SubmittedBatch> {
    const input = batchForAgent(scope, given);
    checkOpen();
    const {
      tasks: parsed,
      parallelism,
      callbackUrl,
    } = await parse((defaults) => work.run(parseBatchSteps(input, defaults)));
    await checkOwn(parsed);
    const batch = { id: newBatchId(), tenant, parallelism, callbackUrl };
    const { tasks, inserted } = await insertAll(parsed, batch);
    // Repeated tasks were created earlier: they do not say when this batch was created.
    const made = inserted.filter(({ repeats }) => repeats === null);
    return {
      batchId: made.length > 0 ? batch.id : await storedBatchId(storage, batch, inserted),
      tasks: inserted.map((task, index) => ({
        taskId: task.id,
        ...keyOf(tasks[index]),
        state: task.state,
        position: task.position,
        ...rejectionOf(task),
      })),
      taskIds: inserted.map(({ id }) => id),
      submitted: inserted.filter(({ rejection, repeats }) => rejection === null && repeats !== "other")
        .length,
      count: inserted.length,
      createdAt: rfc3339(Math.min(...(made.length > 0 ? made : inserted).map(({ createdAt }) => createdAt))),
      ...(await submitWarnings(options, tasks, inserted)),
    };
  }

  /** Stores dependencies before their dependants. Returns the tasks in the order in which they were submitted. */
  async function insertAll(
    parsed: readonly ParsedTask[],
    batch: NewBatch | null,
  ): Promise<{ tasks: NewTask[]; inserted: InsertedTask[] }> {
    const large = largeRequests(parsed);
    const texts = large.length === 0 ? NO_TEXTS : await writeInTurns(large);
    const tasks = newTasks(parsed, batch?.id ?? null, texts);
    await checkCallbacks(tasks, batch);
    const bounded = await bounds.forTasks(tasks);
    await eventLog.tried;
    checkNotGone();
    const ordered = parentsFirst(tasks);
    const store = () =>
      bounded === undefined
        ? engine.intake.addMany(ordered, batch ?? undefined)
        : engine.intake.addBounded(ordered, bounded, batch);
    const inserted = await quota.storing(tenant, ordered, store).catch(async (error) => {
      throw atRefused(await hideOthers(error), tasks);
    });
    if (ordered === tasks) return { tasks, inserted };
    const answers = new Map(ordered.map(({ id }, index) => [id, inserted[index]]));
    return { tasks, inserted: tasks.flatMap(({ id }) => answers.get(id) ?? []) };
  }

  /** Checks each URL once, and all at the same time, so that 100 names that resolve slowly do not wait for each other. */
  async function checkCallbacks(tasks: readonly NewTask[], batch: NewBatch | null): Promise<void> {
    const urls = new Map<string, number>();
    for (const [index, { callbackUrl }] of tasks.entries()) {
      if (callbackUrl !== null && !urls.has(callbackUrl)) urls.set(callbackUrl, index);
    }
    const ofBatch = batch?.callbackUrl ?? null;
    const checks = [
      ...(ofBatch === null ? [] : [checkCallback(ofBatch, "batchCallbackUrl")]),
      ...[...urls].map(([url, index]) =>
        checkCallback(url, "callbackUrl").catch((error) => {
          throw atIndex(error, index);
        }),
      ),
    ];
    if (checks.length === 0) return;
    // Waits for all checks before it throws the first fault.
    for (const check of await Promise.allSettled(checks)) if (check.status === "rejected") throw check.reason;
    checkOpen();
  }

  /** Large requests with idempotency keys, in the form in which requests are compared. */
  async function writeInTurns(requests: readonly Fields[]): Promise<RequestTexts> {
    const texts = new Map<Fields, string>();
    for (const request of requests) texts.set(request, await work.run(canonicalSteps(request)));
    return texts;
  }

  function newTask(parsed: ParsedTask, batch: string | null, texts: RequestTexts): NewTask {
    return {
      ...withProvenance(parsed, provenance),
      id: newTaskId(),
      tenant,
      origin: "task",
      schedule: null,
      batch,
      idempotency: hashed(parsed.idempotency, texts),
    };
  }

  function newTasks(parsed: readonly ParsedTask[], batch: string | null, texts: RequestTexts): NewTask[] {
    const tasks = parsed.map((task) => newTask(task, batch, texts));
    const related = tasks.some(({ dependsOn, spec }) => dependsOn.length > 0 || spec.key !== undefined);
    return related ? withDependencies(tasks) : tasks;
  }

  async function find(taskId: string): Promise<TaskRecord> {
    checkId(taskId);
    const record = ownRecord(scope, await storage.tasks.get({ tenant, id: taskId }));
    if (record === null) throw notFound();
    return record;
  }

  /** Does not say which task an idempotency key was used for, if that is another agent's. */
  async function hideOthers(error: unknown): Promise<unknown> {
    if (scope.agent === undefined || !(error instanceof RotaError)) return error;
    const { taskId, ...details } = error.details ?? {};
    if (error.code !== "idempotency_conflict" || typeof taskId !== "string") return error;
    if (ownRecord(scope, await storage.tasks.get({ tenant, id: taskId })) !== null) return error;
    const message = "`idempotencyKey` was used within 24 hours for another request: take a new key";
    return new RotaError(error.code, message, { details });
  }

  async function listed<Item, Shown>(
    filter: TaskFilter,
    onLooked: ListTasksParams["onLooked"],
    read: (storage: Storage, params: ListTasksParams) => Promise<ListedPage<Item>>,
    show: (item: Item, redactor: Redactor) => Shown,
  ): Promise<{ tasks: Shown[]; count: number; nextCursor: string | null }> {
    const { agent: agentId = filter.agentId } = scope;
    const params = parseTaskFilter({ ...filter, ...(agentId === undefined ? {} : { agentId }) });
    if (namesOther(scope, filter.agentId)) return { tasks: [], count: 0, nextCursor: null };
    const shown = redactor();
    const { items, nextCursor } = await read(storage, { tenant, ...params, onLooked });
    return {
      tasks: items.map((item) => show(item, shown)),
      count: items.length,
      nextCursor: nextCursor === null ? null : taskCursorText(nextCursor, params.order),
    };
  }

  /** Some may have ended meanwhile: each result says what happened to its task. */
  async function cancelAll(ids: readonly string[]): Promise<CancelledTask[]> {
    const answers = await storage.tasks.cancel({ tenant, ids, error: null });
    ended.handle(answers.filter((answer) => answer.found && answer.was === null));
    return answers;
  }

  async function cancelOpen(ids: readonly string[]): Promise<number> {
    return (await cancelAll(ids)).filter((answer) => answer.found && answer.was === null).length;
  }

  /** Why a task is not retried: a dependency of it will never be done. */
  async function blocked(taskId: string, by: BlockingDependency | null): Promise<RotaError> {
    if (by !== null) return blockedError(by.id, by.state);
    const situation = await storage.tasks.situation({ tenant, id: taskId });
    return situation === null ? notFound() : blockedError(goneDependency(situation), null);
  }

  return {
    submit,

    async dryRun(input) {
      const task = await prepare(input);
      const bounded = await bounds.forTasks([task]);
      const now = options.storageNow();
      const planned = { dryRun: true, task: plannedTask(task, now, redactor()) } as const;
      if (bounded === undefined) return planned;
      return { ...planned, left: boundsLeft(bounded, await storage.tasks.boundsUsed(bounded), now) };
    },

    submitMany,
    submitBatch,

    async get(taskId) {
      return toTask(await find(taskId), redactor());
    },

    async explain(taskId) {
      checkId(taskId);
      const situation = await storage.tasks.situation({ tenant, id: taskId });
      if (situation === null || ownRecord(scope, situation.task) === null) throw notFound();
      const { agent, lane } = situation.task;
      const workers =
        situation.workers === null
          ? null
          : {
              serving: await storage.workers.list({ tenant, agents: [agent, ALL_AGENTS] }),
              labels: options.requiredLabels(agent),
            };
      return explainTask(situation, processSituation(lane), workers);
    },

    async logs(taskId, filter = {}) {
      checkId(taskId);
      const log = await readTaskLog({ storage, scope, redactor: redactor() }, taskId, { ...filter });
      if (log === null) throw notFound();
      return log;
    },

    list: async (filter = {}, { onLooked } = {}) => listed(filter, onLooked, listPage, toTask),
    listRows: async (filter = {}, { onLooked } = {}) => listed(filter, onLooked, listRowPage, toTaskRow),

    async getBatch(batchId) {
      return toBatch(await readBatch(storage, scope, batchId), redactor());
    },

    async cancelBatch(batchId) {
      const ids = stillOpen(await readBatch(storage, scope, batchId));
      return { cancelled: ids.length === 0 ? 0 : await cancelOpen(ids) };
    },

    async cancel(taskId, { tree } = {}, { onLooked = () => {} } = {}) {
      checkId(taskId);
      if (optionalBoolean({ tree }, "tree") === true) {
        const { spec } = await find(taskId);
        const { rootTaskId } = enclosing(taskId, spec);
        const { cancelled, more } = await cancelTree({
          storage,
          tenant,
          taskId,
          rootTaskId,
          cancel: cancelOpen,
          onLooked,
        });
        return { status: "cancelled", taskId, cancelled, ...(more ? { more } : {}) };
      }
      if (scope.agent !== undefined) await find(taskId);
      const [cancelled] = await cancelAll([taskId]);
      if (cancelled === undefined || !cancelled.found) throw notFound();
      if (cancelled.was !== null) {
        const details = { state: cancelled.was };
        throw new RotaError("conflict", `task is already ${cancelled.was}`, { details });
      }
      return { status: "cancelled", taskId };
    },

    async retry(taskId, { dependants } = {}) {
      checkOpen();
      checkId(taskId);
      const asked = optionalBoolean({ dependants }, "dependants") ?? false;
      if (scope.agent !== undefined) {
        await find(taskId);
        if (asked) throw othersRetried();
      }
      if (asked) bounds.checkRetriesOfMany();
      const counted = bounds.forRunAgain();
      const retried = await storage.tasks.retry({
        ...{ tenant, id: taskId, dependants: asked },
        ...(counted && { bounds: counted }),
      });
      if (!retried.found) throw notFound();
      if (retried.was === "overdue") {
        throw new RotaError("conflict", "the task's `deadline` has passed: submit it again with a later one");
      }
      if (retried.was === "blocked") throw await blocked(taskId, retried.by);
      if (retried.was !== null) {
        throw new RotaError(
          "conflict",
          `task is ${retried.was}: only a failed or cancelled one can be retried`,
        );
      }
      engine.wakeFor(retried.task);
      const record = retried.task.unserved ? await storage.tasks.get({ tenant, id: taskId }) : null;
      const warnings = record === null ? {} : await submitWarnings(options, [record], [retried.task]);
      return { ...toSubmitted(retried.task), ...warnings };
    },

    async submitAgain(taskId, input) {
      checkOpen();
      const record = await find(taskId);
      const again = { redactor: redactor(), now: options.storageNow() };
      const copied = input === undefined || input === null;
      return submit(inputAgain(record, forDelegate(scope, input), again), { copied });
    },

    async wait(taskId, waitOptions = {}) {
      checkId(taskId);
      checkWait(waitOptions);
      return toTask(await waiter.wait(scope, taskId, waitOptions), redactor());
    },

    async counts() {
      const counts = await storage.tasks.counts({ tenant });
      return { counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) };
    },
  };
}

function toSubmitted({ id, state, position, createdAt }: InsertedTask): SubmittedTask {
  return { taskId: id, state, position, createdAt: rfc3339(createdAt) };
}

/** Adds the index of the task because of which its batch was refused. */
function atRefused(error: unknown, tasks: readonly NewTask[]): unknown {
  const refused = error instanceof RotaError ? error.details?.["refused"] : undefined;
  const index = tasks.findIndex(({ id }) => id === refused);
  if (!(error instanceof RotaError) || index === -1) return error;
  const { refused: _unknown, ...details } = error.details ?? {};
  return atIndex(new RotaError(error.code, error.message, { details, cause: error }), index);
}

function keyOf(task: NewTask | undefined): { key?: string } {
  const key = task?.spec.key;
  return key === undefined ? {} : { key };
}

/** Why one of several tasks was not accepted. */
function rejectionOf(task: InsertedTask): { error?: string } {
  if (task.repeats === "other") return { error: idempotencyConflict(task).message };
  return task.rejection === null ? {} : { error: rejectionError(task.rejection.full) };
}

/** Tasks that depend on one of an agent may be those of other agents. */
function othersRetried(): RotaError {
  return new RotaError(
    "forbidden",
    "the role `agent` may retry only the task itself: leave `dependants` out, or use a key with the role `operator`",
  );
}

function blockedError(dependency: string, state: BlockingDependency["state"] | null): RotaError {
  const [why, instead] =
    state === null
      ? ["is no longer stored", "submit both again"]
      : state === "rejected"
        ? ["was rejected", "submit both again"]
        : [
            state === "failed" ? "failed" : "was cancelled",
            "retry that one with `dependants=true`, which brings this task back too",
          ];
  return new RotaError("conflict", `the task depends on ${dependency}, which ${why}: ${instead}`, {
    details: { dependency },
  });
}

/** A dependency of the task that is no longer stored: the one that its error names, if that is gone as well. */
function goneDependency({ task, parents }: TaskSituation): string {
  const kept = new Set(parents.map(({ id }) => id));
  const gone = (task.spec.dependsOn ?? []).filter((id) => !kept.has(id));
  const named = namedDependency(task.error);
  return gone.find((id) => id === named) ?? gone[0] ?? "a task";
}

function largeRequests(parsed: readonly ParsedTask[]): Fields[] {
  return parsed.flatMap(({ idempotency }) =>
    idempotency !== null && isLargeInput(idempotency.request) ? [idempotency.request] : [],
  );
}

/** Requests are compared by their hash: a request may be long. */
function hashed(idempotency: ParsedTask["idempotency"], texts: RequestTexts): NewTask["idempotency"] {
  if (idempotency === null) return null;
  const { key, request } = idempotency;
  const text = texts.get(request) ?? canonicalJson(request);
  return { key, hash: createHash("sha256").update(text).digest("base64url") };
}

function idempotencyConflict({ id }: InsertedTask): RotaError {
  return new RotaError(
    "idempotency_conflict",
    `\`idempotencyKey\` was used within 24 hours for another request, which made the task ${id}: take a new key`,
    { details: { field: "idempotencyKey", taskId: id } },
  );
}

function checkId(taskId: string): void {
  if (!looksLikeTaskId(taskId)) throw notFound();
}

function notFound(): RotaError {
  return new RotaError("not_found", "task not found");
}

function queueFull(
  { full, queued }: NonNullable<InsertedTask["rejection"]>,
  { agent: agentId, maxQueued }: NewTask,
  { maxQueueSize, maxPerAgent, maxTenant }: AdmissionLimits & { maxTenant: number | null },
): RotaError {
  return new RotaError("queue_full", rejectionError(full), {
    details: {
      agentId,
      queued,
      maxQueue: maxTenant ?? maxQueueSize,
      maxPerAgent: maxQueued === null || maxQueued === NO_QUEUE_LIMIT ? maxPerAgent : maxQueued,
      ...(full === "global" && maxTenant !== null ? { maxTenant } : {}),
    },
  });
}

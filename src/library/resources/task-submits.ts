import { createHash } from "node:crypto";
import type { Engine } from "../../engine/engine.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { LocalTasks, SubmittedManyTask, TaskDryRun } from "../../interface/tasks.ts";
import { NO_QUEUE_LIMIT } from "../../model/agent.ts";
import type { Keyed, SubmittedBatch } from "../../model/batch.ts";
import { RotaError } from "../../model/errors.ts";
import type { BatchInput } from "../../model/input/batch-input.ts";
import { atIndex, parseBatchSteps, parseTaskInputs } from "../../model/input/batch-input.ts";
import { type Fields, invalidField } from "../../model/input/field-checks.ts";
import type { SubmitInput, SubmittedTask } from "../../model/input/submit-input.ts";
import { type ParsedTask, parseTaskInput } from "../../model/input/task-input.ts";
import { type Provenance, withProvenance } from "../../model/provenance.ts";
import type { Redactor } from "../../model/redactor.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { canonicalJson, canonicalSteps } from "../../model/text/canonical-json.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { isLargeInput } from "../../services/large-input.ts";
import type { WorkTurns } from "../../services/work-turns.ts";
import { rejectionError } from "../../storage/admission.ts";
import type {
  AdmissionLimits,
  InsertedTask,
  NewBatch,
  NewTask,
  Storage,
  SubmitBounds,
} from "../../storage/storage.ts";
import { boundsLeft } from "../../storage/submit-bounds.ts";
import { forDelegate } from "../agent-scope.ts";
import type { CallerBounds } from "../caller-bounds.ts";
import { batchForAgent, checkNeighbours } from "./agent-submits.ts";
import { storedBatchId } from "./batches.ts";
import { plannedTask } from "./planned-task.ts";
import type { StoredQuota } from "./stored-quota.ts";
import { submitWarnings } from "./submit-warnings.ts";
import { parentsFirst, withDependencies } from "./task-graph.ts";
import type { TaskParser } from "./task-parser.ts";

/** The most tasks of one `submitMany`. */
const SUBMIT_MANY_MAX = 10_000;

export interface TaskSubmitsOptions {
  readonly scope: Scope;
  /** Who calls, and in which task. */
  readonly provenance: Provenance;
  readonly bounds: CallerBounds;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly eventLog: EventLog;
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
  /** How long a task waits if no live node has an executor for it. */
  readonly noExecutorMs: () => number;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
  /** Throws once the tenant is being deleted. */
  readonly checkNotGone: () => void;
}

/** The canonical texts of large requests with idempotency keys, by request. */
type RequestTexts = ReadonlyMap<Fields, string>;

export interface TaskSubmits extends Pick<LocalTasks, "dryRun" | "submitMany" | "submitBatch"> {
  /** `copied`: the input of a task of the caller, whose dependencies and session were checked when it was submitted. */
  submit(input: SubmitInput, options?: { readonly copied?: boolean }): Promise<SubmittedTask>;
}

/** How tasks of one tenant or agent are submitted: alone, many at once, or as a batch. */
export function createTaskSubmits(options: TaskSubmitsOptions): TaskSubmits {
  const { scope, provenance, bounds, storage, engine, eventLog, limits, maxQueued, quota, work, parse } =
    options;
  const { redactor, storageNow, newTaskId, newBatchId, checkCallback, checkOpen, checkNotGone } = options;
  const { tenant } = scope;

  /** All checks of a submit before its transaction. `copied`: as of `submit`. */
  async function prepare(given: SubmitInput, { copied = false } = {}): Promise<NewTask> {
    const input = forDelegate(scope, given);
    checkOpen();
    const parsed = await parse((defaults) => parseTaskInput(input, defaults));
    if (!copied && scope.agent !== undefined) await checkOwn([parsed]);
    const [task] = newTasks([parsed], null, await textsOf([parsed]));
    if (task === undefined) throw new Error("One input makes one task.");
    if (task.callbackUrl !== null) {
      await checkCallback(task.callbackUrl, "callbackUrl");
      checkOpen();
    }
    return task;
  }

  async function submit(
    given: SubmitInput,
    submitOptions: { readonly copied?: boolean } = {},
  ): Promise<SubmittedTask> {
    const task = await prepare(given, submitOptions);
    const bounded = await bounds.forTasks([task]);
    if (eventLog.tried !== null) await eventLog.tried;
    checkNotGone();
    const inserted = await quota.storing(tenant, [task], () => insertOne(task, bounded));
    if (inserted.repeats === "other") throw await hideOthersTask(idempotencyConflict(inserted));
    if (inserted.rejection !== null) {
      throw queueFull(inserted.rejection, task, { ...limits(), maxTenant: maxQueued() });
    }
    return { ...toSubmitted(inserted), ...(await submitWarnings(options, [task], [inserted])) };
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

  async function dryRun(input: SubmitInput): Promise<TaskDryRun> {
    const task = await prepare(input);
    const bounded = await bounds.forTasks([task]);
    const now = storageNow();
    const planned = { dryRun: true, task: plannedTask(task, now, redactor()) } as const;
    if (bounded === undefined) return planned;
    return { ...planned, left: boundsLeft(bounded, await storage.tasks.boundsUsed(bounded), now) };
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
    const tasks = newTasks(parsed, batch?.id ?? null, await textsOf(parsed));
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
      throw withIndexOfRefused(await hideOthersTask(error), tasks);
    });
    if (ordered === tasks) return { tasks, inserted };
    const results = new Map(ordered.map(({ id }, index) => [id, inserted[index]]));
    return { tasks, inserted: tasks.flatMap(({ id }) => results.get(id) ?? []) };
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

  /** Large requests with idempotency keys, in the form in which requests are compared: writing it takes turns with other work. */
  async function textsOf(parsed: readonly ParsedTask[]): Promise<RequestTexts> {
    const texts = new Map<Fields, string>();
    for (const request of largeRequests(parsed)) texts.set(request, await work.run(canonicalSteps(request)));
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

  /** Does not say which task an idempotency key was used for, if that is another agent's. */
  async function hideOthersTask(error: unknown): Promise<unknown> {
    if (scope.agent === undefined || !(error instanceof RotaError)) return error;
    const { taskId, ...details } = error.details ?? {};
    if (error.code !== "idempotency_conflict" || typeof taskId !== "string") return error;
    if (ownRecord(scope, await storage.tasks.get({ tenant, id: taskId })) !== null) return error;
    const message = "`idempotencyKey` was used within 24 hours for another request: take a new key";
    return new RotaError(error.code, message, { details });
  }

  return { submit, dryRun, submitMany, submitBatch };
}

export function toSubmitted({ id, state, position, createdAt }: InsertedTask): SubmittedTask {
  return { taskId: id, state, position, createdAt: rfc3339(createdAt) };
}

/** Adds the index of the task because of which its batch was refused. */
function withIndexOfRefused(error: unknown, tasks: readonly NewTask[]): unknown {
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

import type { TaskWaiter } from "../../events/task-waiter.ts";
import type { LocalTasks, SizedReading, TaskFilter } from "../../interface/tasks.ts";
import { RotaError } from "../../model/errors.ts";
import { optionalBoolean } from "../../model/input/field-checks.ts";
import { parseTaskFilter } from "../../model/input/task-filter-input.ts";
import { TASK_BYTES_MAX } from "../../model/input/task-input.ts";
import { checkWait } from "../../model/input/wait-input.ts";
import { enclosing } from "../../model/provenance.ts";
import type { Redactor } from "../../model/redactor.ts";
import { ownRecord } from "../../model/scope.ts";
import { taskCursorText } from "../../model/task-cursor.ts";
import { looksLikeTaskId } from "../../model/task-id.ts";
import { type TaskRecord, toTask, toTaskRow } from "../../model/task-record.ts";
import { markOwn } from "../../model/text/own-json.ts";
import { letOthersThrough } from "../../services/large-input.ts";
import { namedDependency } from "../../storage/dependency-error.ts";
import { isStatus, lookAtTask } from "../../storage/look-at-task.ts";
import {
  ALL_AGENTS,
  type BlockingDependency,
  type CancelledTask,
  type ListTasksParams,
  type Storage,
  type TaskSituation,
} from "../../storage/storage.ts";
import { forDelegate, namesOther } from "../agent-scope.ts";
import { readBatch, stillOpen, toBatch } from "./batches.ts";
import { cancelTree } from "./cancel-tree.ts";
import type { EndedTasks } from "./ended-tasks.ts";
import { explainTask, type ProcessSituation } from "./explain-task.ts";
import { type ListedPage, listPage, listRowPage } from "./list-page.ts";
import { inputAgain } from "./submit-again.ts";
import { submitWarnings } from "./submit-warnings.ts";
import { readTaskLog } from "./task-log.ts";
import { createTaskSubmits, type TaskSubmitsOptions, toSubmitted } from "./task-submits.ts";

export interface TasksOptions extends TaskSubmitsOptions {
  readonly waiter: TaskWaiter;
  /** What this process knows of a lane: its slots, its memory and its state. */
  readonly processSituation: (lane: string) => ProcessSituation;
  /** The labels that a worker needs to run an agent; undefined: none. */
  readonly requiredLabels: (agent: string) => Readonly<Record<string, string>> | undefined;
  readonly ended: EndedTasks;
}

/** The tasks API of one tenant or agent. */
export function createTasks(options: TasksOptions): LocalTasks {
  const { scope, bounds, storage, engine, waiter, ended, redactor, checkOpen } = options;
  const { submit, dryRun, submitMany, submitBatch } = createTaskSubmits(options);
  const { tenant } = scope;

  async function find(taskId: string, reading?: SizedReading): Promise<TaskRecord> {
    checkId(taskId);
    const name = { tenant, id: taskId };
    if (reading?.onSize !== undefined) {
      const found = ownRecord(scope, await lookAtTask(storage.tasks, name));
      if (found === null) throw notFound();
      if (!isStatus(found)) return found;
      await reading.onSize(found.bytes);
    }
    const record = ownRecord(scope, await storage.tasks.get(name));
    if (record === null) throw notFound();
    return record;
  }

  /** Announces the size of a task before it is read. */
  async function admit(taskId: string, { onSize }: SizedReading = {}): Promise<void> {
    checkId(taskId);
    if (onSize === undefined) return;
    const status = ownRecord(scope, await storage.tasks.status({ tenant, id: taskId }));
    if (status === null) throw notFound();
    await onSize(status.bytes);
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
    return situation === null ? notFound() : blockedError(goneDependency(situation), "gone");
  }

  return {
    submit: (input) => submit(input),
    dryRun,
    submitMany,
    submitBatch,

    async get(taskId, reading) {
      return toTask(await find(taskId, reading), redactor());
    },

    async explain(taskId, reading) {
      await admit(taskId, reading);
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
      return explainTask(situation, options.processSituation(lane), workers);
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

    async retry(taskId, { dependants } = {}, reading = {}) {
      await admit(taskId, reading);
      checkOpen();
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

    async submitAgain(taskId, input, reading) {
      checkOpen();
      const record = await find(taskId, reading);
      const again = { redactor: redactor(), now: options.storageNow() };
      const copied = input === undefined || input === null;
      const given = inputAgain(record, forDelegate(scope, input), again);
      if (!copied) return submit(given);
      // What was read is checked and written in other turns of the event loop.
      await letOthersThrough(markOwn(given, TASK_BYTES_MAX));
      return submit(given, { copied });
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

/** Tasks that depend on one of an agent may be those of other agents. */
function othersRetried(): RotaError {
  return new RotaError(
    "forbidden",
    "the role `agent` may retry only the task itself: leave `dependants` out, or use a key with the role `operator`",
  );
}

/** How a dependency ended, and what to do about it. `gone`: it is no longer stored. */
const BLOCKED = {
  failed: ["failed", "retry that one with `dependants=true`, which brings this task back too"],
  cancelled: ["was cancelled", "retry that one with `dependants=true`, which brings this task back too"],
  rejected: ["was rejected", "submit both again"],
  gone: ["is no longer stored", "submit both again"],
} as const;

function blockedError(dependency: string, why: keyof typeof BLOCKED): RotaError {
  const [ended, instead] = BLOCKED[why];
  return new RotaError("conflict", `the task depends on ${dependency}, which ${ended}: ${instead}`, {
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

function checkId(taskId: string): void {
  if (!looksLikeTaskId(taskId)) throw notFound();
}

function notFound(): RotaError {
  return new RotaError("not_found", "task not found");
}

import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { cancelBatch, getBatch, submitBatch } from "../../api/batches.ts";
import {
  cancelTask,
  deleteTask,
  explainTask,
  getTask,
  getTaskCounts,
  getTaskLog,
  listTasks,
  retryTask,
  submitTask,
  submitTaskAgain,
} from "../../api/tasks.ts";
import type { TaskLogFilter } from "../../interface/task-logs.ts";
import type { CancelOptions, TaskFilter, TaskRetryOptions } from "../../interface/tasks.ts";
import type { BatchInput } from "../../model/input/batch-input.ts";
import { BATCH_MAX } from "../../model/input/batch-input.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { readFields } from "../../model/input/read-fields.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import { TASK_VIEW } from "../../model/input/task-filter-input.ts";
import { DEPENDS_ON_MAX } from "../../model/input/task-schema.ts";
import { skipAudit } from "../middleware/audit.ts";
import { RETRY_AFTER_SEC } from "../middleware/errors.ts";
import type { RouteParts } from "../route-parts.ts";
import { refuseKey, withKey } from "./idempotency-header.ts";
import { isDryRun, toBoolean, toNumber, withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Tasks: submit, read, list, cancel and retry them. */
export const taskRoutes: FastifyPluginAsyncZod<RouteParts> = async (
  app,
  { waits, largeJson, batchTurns },
) => {
  app.post("/tasks", requiredRole("submit", submitTask), async (request, reply) => {
    const key = request.headers["idempotency-key"];
    const input = (key === undefined ? request.body : withKey(request.body, key)) as SubmitInput;
    if (isDryRun(request.query)) {
      skipAudit(request);
      return request.rota.tasks.dryRun(input);
    }
    reply.code(202);
    return request.rota.tasks.submit(input);
  });

  app.post("/tasks/batch", requiredRole("submit", submitBatch, tasksGiven), async (request, reply) => {
    reply.code(202);
    refuseKey(request.headers["idempotency-key"], "give each task of a batch its own `idempotencyKey`");
    const { rota, body, callerContext } = request;
    const submitted = await batchTurns.during(callerContext.caller.tenant, () =>
      rota.tasks.submitBatch(body as unknown as BatchInput),
    );
    if (submitted.tasks.some(({ state }) => state === "rejected")) {
      reply.header("retry-after", RETRY_AFTER_SEC.queue_full);
    }
    return submitted;
  });

  app.get("/tasks/batches/:id", requiredRole("readOwn", getBatch), async ({ rota, params }) =>
    rota.tasks.getBatch(params.id),
  );

  app.post("/tasks/batches/:id/cancel", requiredRole("operate", cancelBatch), async ({ rota, params }) =>
    rota.tasks.cancelBatch(params.id),
  );

  app.get(
    "/tasks",
    requiredRole("readOwn", listTasks),
    async ({ rota, charge, query: { view, ...query } }) => {
      const filter = withNumbers(query, "priority", "scheduleId", "limit") as TaskFilter;
      const options = { onLooked: (entries: number) => charge?.looked(entries) };
      return readFields(TASK_VIEW, { view }).view === "row"
        ? rota.tasks.listRows(filter, options)
        : rota.tasks.list(filter, options);
    },
  );

  app.get("/tasks/stats", requiredRole("read", getTaskCounts), async ({ rota }) => rota.tasks.counts());

  app.get("/tasks/:id", requiredRole("readOwn", getTask), async (request) => {
    const { params, query, callerContext } = request;
    const reading = largeJson.paid(request);
    if (query.wait === undefined) return request.rota.tasks.get(params.id, reading);
    const waiting = { ...reading, seconds: toNumber(query.wait), gone: request.signal };
    return waits.wait(callerContext, params.id, waiting);
  });

  app.get("/tasks/:id/explain", requiredRole("readOwn", explainTask), async (request) =>
    request.rota.tasks.explain(request.params.id, largeJson.paid(request, "bytesIn")),
  );

  app.get("/tasks/:id/logs", requiredRole("readOwn", getTaskLog), async ({ rota, params, query }) =>
    rota.tasks.logs(params.id, withNumbers(query, "attempt", "after", "limit") as TaskLogFilter),
  );

  app.post(
    "/tasks/:id/cancel",
    requiredRole("submit", cancelTask, tasksOfTree),
    async ({ rota, charge, params, query }) =>
      rota.tasks.cancel(params.id, cancelOptions(query), {
        onLooked: (entries) => charge?.looked(entries),
      }),
  );

  app.delete(
    "/tasks/:id",
    requiredRole("submit", deleteTask, tasksOfTree),
    async ({ rota, charge, params, query }) =>
      rota.tasks.cancel(params.id, cancelOptions(query), {
        onLooked: (entries) => charge?.looked(entries),
      }),
  );

  app.post("/tasks/:id/retry", requiredRole("submit", retryTask), async (request, reply) => {
    reply.code(202);
    const { rota, params, query } = request;
    const options = query.dependants === undefined ? {} : { dependants: toBoolean(query.dependants) };
    return rota.tasks.retry(params.id, options as TaskRetryOptions, largeJson.paid(request, "bytesIn"));
  });

  app.post("/tasks/:id/submit-again", requiredRole("submit", submitTaskAgain), async (request, reply) => {
    reply.code(202);
    const { rota, params, body, headers } = request;
    refuseKey(headers["idempotency-key"], "write `idempotencyKey` into the task that you send");
    const input = (body ?? undefined) as SubmitInput | undefined;
    return rota.tasks.submitAgain(params.id, input, largeJson.paid(request, "bytesIn"));
  });
};

function cancelOptions({ tree }: { readonly tree?: string }): CancelOptions {
  return (tree === undefined ? {} : { tree: toBoolean(tree) }) as CancelOptions;
}

/** A tree may have many tasks: cancelling one is charged as an expensive request, and for the tasks that it reads. */
const TREE_ROWS = 500;

function tasksOfTree(_body: unknown, query: unknown): { rows: number } {
  return { rows: (query as { tree?: string }).tree === "true" ? TREE_ROWS : 0 };
}

/** To check and store a task takes about as long as to read so many, or longer if its agent is new. */
const ROWS_OF_NEW_TASK = 4;

/** Each task of a batch counts as some rows, and each dependency of it as one. */
function tasksGiven(body: unknown): { rows: number } {
  const tasks: unknown = isObject(body) ? body["tasks"] : undefined;
  if (!Array.isArray(tasks)) return { rows: 0 };
  return { rows: tasks.slice(0, BATCH_MAX.others).reduce((sum: number, task) => sum + rowsOf(task), 0) };
}

function rowsOf(task: unknown): number {
  const parents = isObject(task) ? task["dependsOn"] : undefined;
  return ROWS_OF_NEW_TASK + (Array.isArray(parents) ? Math.min(parents.length, DEPENDS_ON_MAX) : 0);
}

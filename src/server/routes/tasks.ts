import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { cancelBatch, getBatch, submitBatch } from "../../api/batches.ts";
import {
  cancelTask,
  deleteTask,
  explainTask,
  getTask,
  getTaskCounts,
  listTasks,
  retryTask,
  submitTask,
} from "../../api/tasks.ts";
import type { TaskFilter } from "../../interface/tasks.ts";
import type { BatchInput } from "../../model/batch.ts";
import type { SubmitInput } from "../../model/submit-input.ts";
import type { RouteParts } from "../routes.ts";
import { refuseKey, withKey } from "./idempotency-header.ts";
import { toNumber, withNumbers } from "./query-values.ts";

/** Tasks: hand in one or many, look at one or many, cancel one, retry one. */
export const taskRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota, waits }) => {
  app.post("/tasks", { schema: submitTask }, async (request, reply) => {
    reply.code(202);
    const key = request.headers["idempotency-key"];
    return rota.tasks.submit((key === undefined ? request.body : withKey(request.body, key)) as SubmitInput);
  });

  app.post("/tasks/batch", { schema: submitBatch }, async (request, reply) => {
    reply.code(202);
    refuseKey(request.headers["idempotency-key"], "give each task of a batch its own `idempotencyKey`");
    return rota.tasks.submitBatch(request.body as unknown as BatchInput);
  });

  app.get("/tasks/batches/:id", { schema: getBatch }, async ({ params }) => rota.tasks.getBatch(params.id));

  app.post("/tasks/batches/:id/cancel", { schema: cancelBatch }, async ({ params }) =>
    rota.tasks.cancelBatch(params.id),
  );

  app.get("/tasks", { schema: listTasks }, async ({ query }) =>
    rota.tasks.list(withNumbers(query, "priority", "scheduleId", "limit") as TaskFilter),
  );

  app.get("/tasks/stats", { schema: getTaskCounts }, async () => rota.tasks.counts());

  app.get("/tasks/:id", { schema: getTask }, async (request) => {
    const { params, query } = request;
    if (query.wait === undefined) return rota.tasks.get(params.id);
    return waits.wait(params.id, { seconds: toNumber(query.wait), gone: request.signal });
  });

  app.get("/tasks/:id/explain", { schema: explainTask }, async ({ params }) => rota.tasks.explain(params.id));

  app.post("/tasks/:id/cancel", { schema: cancelTask }, async ({ params }) => rota.tasks.cancel(params.id));

  app.delete("/tasks/:id", { schema: deleteTask }, async ({ params }) => rota.tasks.cancel(params.id));

  app.post("/tasks/:id/retry", { schema: retryTask }, async ({ params }, reply) => {
    reply.code(202);
    return rota.tasks.retry(params.id);
  });
};

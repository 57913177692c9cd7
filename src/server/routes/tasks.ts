import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import { cancelledTask, submittedTask, task, taskInput, taskPage, taskQuery } from "../../api/tasks.ts";
import type { Rota } from "../../interface/rota.ts";
import type { TaskFilter } from "../../interface/tasks.ts";
import { invalidField, isObject, shown } from "../../model/field-checks.ts";
import type { SubmitInput } from "../../model/submit-input.ts";

const params = z.strictObject({ id: z.string() });

/** Tasks: hand one in, look at one or many, cancel one. */
export const taskRoutes: FastifyPluginAsyncZod<{ rota: Rota }> = async (app, { rota }) => {
  app.post(
    "/tasks",
    { schema: { body: taskInput, response: { 202: submittedTask } } },
    async (request, reply) => {
      reply.code(202);
      return rota.tasks.submit(request.body as SubmitInput);
    },
  );

  app.get("/tasks", { schema: { querystring: taskQuery, response: { 200: taskPage } } }, async ({ query }) =>
    rota.tasks.list(toFilter(query)),
  );

  app.get("/tasks/:id", { schema: { params, response: { 200: task } } }, async (request) =>
    rota.tasks.get(request.params.id),
  );

  const cancel = { schema: { params, response: { 200: cancelledTask } } };
  app.post("/tasks/:id/cancel", cancel, async (request) => {
    checkNoFields(request.body);
    return rota.tasks.cancel(request.params.id);
  });
  app.delete("/tasks/:id", cancel, async (request) => {
    checkNoFields(request.body);
    return rota.tasks.cancel(request.params.id);
  });
};

/** Numbers come as text; one that is none stays a text, and the library says what it must be. */
function toFilter({ priority, limit, ...rest }: z.infer<typeof taskQuery>): TaskFilter {
  return {
    ...rest,
    ...(priority === undefined ? {} : { priority: toNumber(priority) }),
    ...(limit === undefined ? {} : { limit: toNumber(limit) }),
  } as TaskFilter;
}

function toNumber(text: unknown): unknown {
  return typeof text === "string" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** Whoever sends fields to a route that takes none expects something that will not happen. */
function checkNoFields(body: unknown): void {
  const [field] = isObject(body) ? Object.keys(body) : [];
  if (field !== undefined) {
    throw invalidField(field, `unknown field \`${shown(field)}\`: cancelling takes none`);
  }
}

import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { createAgent, deleteAgent, getAgent, listAgents, updateAgent } from "../../api/agents.ts";
import type { AgentChanges, AgentInput } from "../../interface/agents.ts";
import type { RouteParts } from "../routes.ts";

/** The catalogue of agents. */
export const agentRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/agents", { schema: listAgents }, async () => rota.agents.list());

  app.post("/agents", { schema: createAgent }, async (request, reply) => {
    reply.code(201);
    return rota.agents.create(request.body as AgentInput);
  });

  app.get("/agents/:id", { schema: getAgent }, async ({ params }) => rota.agents.get(params.id));

  app.patch("/agents/:id", { schema: updateAgent }, async ({ params, body }) =>
    rota.agents.update(params.id, body as AgentChanges),
  );

  app.delete("/agents/:id", { schema: deleteAgent }, async ({ params }) => rota.agents.delete(params.id));
};

import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { createAgent, deleteAgent, getAgent, listAgents, updateAgent } from "../../api/agents.ts";
import type { AgentChanges, AgentInput, AgentPageInput } from "../../interface/agents.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** The catalogue of agents. */
export const agentRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/agents", requiredRole("readOwn", listAgents), async ({ rota, query }) =>
    rota.agents.list(withNumbers(query, "limit") as AgentPageInput),
  );

  app.post("/agents", requiredRole("operate", createAgent), async (request, reply) => {
    reply.code(201);
    return request.rota.agents.create(request.body as AgentInput);
  });

  app.get("/agents/:id", requiredRole("readOwn", getAgent), async ({ rota, params }) =>
    rota.agents.get(params.id),
  );

  app.patch("/agents/:id", requiredRole("operate", updateAgent), async ({ rota, params, body }) =>
    rota.agents.update(params.id, body as AgentChanges),
  );

  app.delete("/agents/:id", requiredRole("operate", deleteAgent), async ({ rota, params }) =>
    rota.agents.delete(params.id),
  );
};

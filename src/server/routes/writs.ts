import type { FastifyRequest } from "fastify";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { carryOutWrits } from "../../api/writs.ts";
import type { WritInput } from "../../interface/writs.ts";
import { DEFAULT_AGENT } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { prefersText } from "../accepts.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

const TEXT = "text/plain; charset=utf-8";

/** Writs: `/schedule …` commands of agents. */
export const writRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.post("/writs", requiredRole("submit", carryOutWrits), async (request, reply) => {
    const carryOut = () => {
      request.subject = agentOf(request);
      return request.rota.writs.carryOut(request.body as WritInput);
    };
    if (!prefersText(request.headers.accept)) return carryOut();
    try {
      const { output } = await carryOut();
      return reply.type(TEXT).send(`${output}\n`);
    } catch (error) {
      // If the scheduler does not run, the agent gets the text that the writ defines for that.
      const output = error instanceof RotaError ? error.details?.["output"] : undefined;
      if (!(error instanceof RotaError) || output === undefined) throw error;
      return reply
        .code(error.status as 503)
        .type(TEXT)
        .send(`${output}\n`);
    }
  });
};

/** The agent of the writ, for the audit log. `carryOut` refuses what is not a name of an agent. */
function agentOf({ callerContext, body }: FastifyRequest): string {
  const named = isObject(body) ? body["agent"] : undefined;
  return callerContext.caller.agent ?? (typeof named === "string" ? named : DEFAULT_AGENT);
}

import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getDoctor } from "../../api/doctor.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

/** For whoever wants to know that all is well. */
export const doctorRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation }) => {
  app.get("/doctor", may("administer", getDoctor), async ({ visitor }) => {
    const { ok, checks } = await installation.doctor({ tenantId: visitor.caller.tenant });
    return { ok, checks: checks.map((check) => ({ ...check, findings: [...check.findings] })) };
  });
};

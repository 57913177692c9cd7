import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getDoctor } from "../../api/doctor.ts";
import type { RouteParts } from "../routes.ts";

/** For whoever wants to know that all is well. */
export const doctorRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/doctor", { schema: getDoctor }, async () => {
    const { ok, checks } = await rota.doctor();
    return { ok, checks: checks.map((check) => ({ ...check, findings: [...check.findings] })) };
  });
};

import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getDoctor } from "../../api/doctor.ts";
import type { DoctorReport } from "../../interface/doctor.ts";
import { RotaError } from "../../model/errors.ts";
import { prefersStream } from "../accepts.ts";
import { ReportStream } from "../report-stream.ts";
import type { RouteParts } from "../route-parts.ts";
import { whenClosed } from "../when-closed.ts";
import { requiredRole } from "./required-role.ts";

/** Examines the installation. The examination stops when the caller disconnects. */
export const doctorRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation, log }) => {
  app.get("/doctor", requiredRole("administer", getDoctor), async ({ callerContext, headers }, reply) => {
    const left = new AbortController();
    whenClosed(reply.raw, () => left.abort());
    const caller = { tenantId: callerContext.caller.tenant, signal: left.signal };
    if (prefersStream(headers.accept)) {
      reply.hijack();
      const stream = new ReportStream(reply.raw);
      const onProgress = stream.progress.bind(stream);
      await installation.doctor({ ...caller, onProgress }).then(
        (report) => stream.end(report),
        (error) => {
          if (!(error instanceof RotaError || left.signal.aborted))
            log.error({ error }, "the doctor's check failed");
          stream.fail(error);
        },
      );
      return reply as never;
    }
    try {
      return toAnswer(await installation.doctor(caller));
    } catch (error) {
      if (!left.signal.aborted) throw error;
      // The caller has disconnected.
      return reply.hijack() as never;
    }
  });
};

function toAnswer({ ok, checks }: DoctorReport) {
  return { ok, checks: checks.map((check) => ({ ...check, findings: [...check.findings] })) };
}

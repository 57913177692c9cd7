import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { abortBulk, getBulk, startBulk } from "../../api/bulks.ts";
import type { BulkInput } from "../../interface/bulks.ts";
import { BULK_IDS_MAX } from "../../model/bulk.ts";
import { BULK_REQUEST } from "../../model/input/bulk-input.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { readFields } from "../../model/input/read-fields.ts";
import { skipAudit } from "../middleware/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** Bulk actions: start one, preview one with `dryRun`, read its progress, abort it. */
export const bulkRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.post("/tasks/bulk", requiredRole("operate", startBulk, rowsOf), async (request, reply) => {
    const { dryRun: _dryRun, ...input } = isObject(request.body) ? request.body : {};
    if (isObject(request.body) && readFields(BULK_REQUEST, request.body).dryRun) {
      skipAudit(request);
      return request.rota.bulks.preview(input as unknown as BulkInput);
    }
    reply.code(202);
    return request.rota.bulks.start(input as unknown as BulkInput, {
      by: request.callerContext.caller.keyId,
    });
  });

  app.get("/bulk/:id", requiredRole("read", getBulk), async ({ rota, params }) => rota.bulks.get(params.id));

  app.post("/bulk/:id/abort", requiredRole("operate", abortBulk), async ({ rota, params }) =>
    rota.bulks.abort(params.id),
  );
};

/** Counting the tasks that match a filter is charged as an expensive request, so that few counts of one key run at once. */
const FILTER_ROWS = 500;

function rowsOf(body: unknown): { rows: number } {
  const ids = isObject(body) ? body["ids"] : undefined;
  return { rows: Array.isArray(ids) ? Math.min(ids.length, BULK_IDS_MAX) : FILTER_ROWS };
}

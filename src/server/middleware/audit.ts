import type { FastifyInstance, FastifyRequest } from "fastify";
import type { LocalAudit } from "../../interface/audit.ts";
import { isObject } from "../../model/field-checks.ts";
import { DEFAULT_TENANT } from "../../model/task.ts";
import type { Permission } from "../../tenants/permissions.ts";

const READS = ["GET", "HEAD"];

/** What routes let whoever asks do that is a change. */
const CHANGES: readonly unknown[] = ["submit", "operate", "administer"] satisfies Permission[];

/** What the thing is called that a route is about: in its path, else in its answer, where a `key` is a secret. */
const NAMES_IN_PATH = ["id", "key", "name"];
const NAMES_IN_ANSWER = ["taskId", "batchId", "id"];
const SUBJECT_LENGTH_MAX = 256;

/**
 * Writes down what keys change, once it is done. What looks after the installation is written down before it is answered, also
 * where no key is asked for; everything else soon after, together with what others did.
 */
export function auditWrites(app: FastifyInstance, audit: LocalAudit): void {
  app.decorateRequest("subject");
  // The answer as it is before it becomes bytes; a text has no subject, and its route names one in the path or none.
  app.addHook("preSerialization", async (request, _reply, answer) => {
    request.subject = subjectOf(request, answer);
    return answer;
  });
  app.addHook("onSend", async (request, reply) => {
    if (reply.statusCode < 400) await auditWrite(request, audit);
  });
}

/** For a route that answers by itself. */
export async function auditWrite(request: FastifyRequest, audit: LocalAudit): Promise<void> {
  const { method, routeOptions, visitor } = request;
  const { access } = routeOptions.config;
  if (!CHANGES.includes(access) || READS.includes(method)) return;
  const { keyId, tenant } = visitor.caller;
  if (keyId === null && access !== "administer") return;
  const subject = request.subject ?? subjectOf(request, undefined);
  // Whoever deletes their own tenant would take along what tells of it.
  const isGone = method === "DELETE" && access === "administer" && subject === tenant;
  const entry = {
    tenantId: isGone ? DEFAULT_TENANT : tenant,
    keyId,
    route: `${method} ${routeOptions.url?.replaceAll(/:(\w+)/g, "{$1}")}`,
    subject,
  };
  if (access === "administer") await audit.write(entry);
  else audit.note(entry);
}

function subjectOf({ params }: FastifyRequest, answer: unknown): string | null {
  const schedule = isObject(answer) ? answer["scheduled_task"] : undefined;
  const subject =
    firstOf(params, NAMES_IN_PATH) ?? firstOf(answer, NAMES_IN_ANSWER) ?? firstOf(schedule, NAMES_IN_ANSWER);
  return subject === undefined ? null : String(subject).slice(0, SUBJECT_LENGTH_MAX);
}

function firstOf(source: unknown, names: readonly string[]): unknown {
  if (!isObject(source)) return undefined;
  return names.map((name) => source[name]).find((value) => value !== undefined);
}

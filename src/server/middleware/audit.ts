import type { FastifyInstance, FastifyRequest } from "fastify";
import type { LocalAudit } from "../../interface/audit.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { Permission } from "../../tenants/permissions.ts";
import { addressOf } from "../address.ts";

const READS = ["GET", "HEAD"];

/** What routes let whoever asks do that is a change. */
const CHANGES: readonly unknown[] = ["submit", "operate", "manage", "administer"] satisfies Permission[];
/** Permissions whose changes are recorded before the response is sent. */
const MANAGES: readonly unknown[] = ["manage", "administer"] satisfies Permission[];

/** What the thing is called that a route is about: in its path, else in its answer, where a `key` is a secret. */
const NAMES_IN_PATH = ["id", "key", "name"];
const NAMES_IN_ANSWER = ["taskId", "batchId", "bulkId", "id"];
const SUBJECT_LENGTH_MAX = 256;
/** Routes whose subject is a name that a caller chose, such as a session key. Elsewhere it is an id that Rota made. */
const ABOUT_NAMES = /\{key\}|\{name\}|^\S+ \/v1\/(?:agents|writs)/;

/** Those that are in it already, when they are answered. */
const written = new WeakSet<FastifyRequest>();

/**
 * Writes down what keys change, once it is done. What looks after the installation is written down before it is answered, also
 * where no key is asked for; everything else soon after, together with what others did.
 */
export function auditWrites(app: FastifyInstance, audit: LocalAudit): void {
  app.decorateRequest("subject");
  // The answer as it is before it becomes bytes; a text has no subject, and its route names one in the path or by itself.
  app.addHook("preSerialization", async (request, _reply, answer) => {
    request.subject ??= subjectOf(request, answer);
    return answer;
  });
  app.addHook("onSend", async (request, reply) => {
    if (reply.statusCode < 400) await auditWrite(request, audit);
  });
}

/** `POST /v1/schedules/{id}/run`: never what a caller wrote. */
export function routeOf({ method, routeOptions }: FastifyRequest): string {
  const path = routeOptions.url?.replaceAll(/:(\w+)/g, "{$1}");
  return path === undefined ? "no such route" : `${method} ${path}`;
}

/** For a request that turned out to change nothing. */
export function skipAudit(request: FastifyRequest): void {
  written.add(request);
}

/** For a route that has done something long before it answers, or answers by itself. */
export async function auditWrite(request: FastifyRequest, audit: LocalAudit): Promise<void> {
  const { method, routeOptions, visitor } = request;
  const { access } = routeOptions.config;
  if (!CHANGES.includes(access) || READS.includes(method) || written.has(request)) return;
  const { keyId } = visitor.caller;
  const manages = MANAGES.includes(access);
  if (keyId === null && !manages) return;
  written.add(request);
  const route = routeOf(request);
  const subject = request.subject ?? subjectOf(request, undefined);
  const entry = { keyId, route, subject, isChosen: ABOUT_NAMES.test(route), address: addressOf(request) };
  if (!manages) audit.note({ ...entry, tenantId: visitor.caller.tenant });
  else for (const tenantId of tenantsOf(request, entry.subject)) await audit.write({ ...entry, tenantId });
}

/** The tenants in whose logs the change is recorded: that of the caller, and the changed one. */
function tenantsOf({ routeOptions, visitor, body, query }: FastifyRequest, subject: string | null) {
  const { tenant } = visitor.caller;
  const isTenant = routeOptions.url?.startsWith("/v1/tenants") === true && subject !== null;
  const named = firstOf(body, ["tenantId"]) ?? firstOf(query, ["tenantId"]);
  return new Set([tenant, isTenant ? subject : typeof named === "string" ? named : tenant]);
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

import type { FastifyInstance, FastifyRequest } from "fastify";
import type { LocalAudit } from "../../interface/audit.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { Permission } from "../../tenants/permissions.ts";
import { addressOf } from "../address.ts";

const READS = ["GET", "HEAD"];

/** Permissions of routes that change something. */
const CHANGES: readonly unknown[] = ["submit", "operate", "manage", "administer"] satisfies Permission[];
/** Permissions whose changes are recorded before the response is sent. */
const MANAGES: readonly unknown[] = ["manage", "administer"] satisfies Permission[];

/** Fields that name the subject: in the path, else in the response, where `key` would be a secret. */
const NAMES_IN_PATH = ["id", "key", "name"];
const NAMES_IN_ANSWER = ["taskId", "batchId", "bulkId", "id"];
const SUBJECT_LENGTH_MAX = 256;
/** Routes whose subject is a name that a caller chose, such as a session key. Elsewhere it is an id that Rota made. */
const ABOUT_NAMES = /\{key\}|\{name\}|^\S+ \/v1\/(?:agents|writs)/;

/** Requests that are already recorded, or are not to be. */
const written = new WeakSet<FastifyRequest>();

/**
 * Records what callers change, once it is done. Changes to the installation are recorded before the response is sent, even on a
 * server without keys. All others are recorded soon after, many in one write.
 */
export function auditWrites(app: FastifyInstance, audit: LocalAudit): void {
  app.decorateRequest("subject");
  // A closed connection knows the address of its caller only if it was read before: the caller may hang up before the response.
  app.server.on("connection", (socket) => void socket.remoteAddress);
  // Reads the response before it is serialized. A response of text has no subject; its route has one in the path, or sets it.
  app.addHook("preSerialization", (request, reply, answer, done) => {
    if (reply.statusCode < 400 && isRecorded(request)) request.subject ??= subjectOf(request, answer);
    done();
  });
  app.addHook("onSend", (request, reply, _payload, done) => {
    if (reply.statusCode >= 400 || !isRecorded(request)) return done();
    // Fastify goes on when the promise resolves, and handles what the rest of the response throws.
    return auditWrite(request, audit);
  });
}

/** Whether a request is to be recorded, and is not yet. */
function isRecorded(request: FastifyRequest): boolean {
  const { method, routeOptions, callerContext } = request;
  const { access } = routeOptions.config;
  if (!CHANGES.includes(access) || READS.includes(method) || written.has(request)) return false;
  const isNamed = callerContext.caller.keyId !== null || callerContext.provenance.within !== null;
  return isNamed || MANAGES.includes(access);
}

/** The pattern of the route, as `POST /v1/schedules/{id}/run`: never text of the caller. */
export function routeOf({ method, routeOptions }: FastifyRequest): string {
  const path = routeOptions.url?.replaceAll(/:(\w+)/g, "{$1}");
  return path === undefined ? "no such route" : `${method} ${path}`;
}

/** For a request that turned out to change nothing. */
export function skipAudit(request: FastifyRequest): void {
  written.add(request);
}

/** For routes that respond long after the change, or write the response themselves. */
export async function auditWrite(request: FastifyRequest, audit: LocalAudit): Promise<void> {
  if (!isRecorded(request)) return;
  const { routeOptions, callerContext } = request;
  const { keyId } = callerContext.caller;
  const manages = MANAGES.includes(routeOptions.config.access);
  written.add(request);
  const route = routeOf(request);
  const subject = request.subject ?? subjectOf(request, undefined);
  const entry = { keyId, route, subject, isChosen: ABOUT_NAMES.test(route), ...whoOf(request) };
  if (!manages) audit.record({ ...entry, tenantId: callerContext.caller.tenant });
  else for (const tenantId of tenantsOf(request, entry.subject)) await audit.write({ ...entry, tenantId });
}

/**
 * Records that a worker came or went. What workers do all the time, claims, heartbeats and finishes, is not recorded: the events
 * of the tasks show that.
 */
export function auditWorker(request: FastifyRequest, audit: LocalAudit, subject: string): void {
  const { keyId, tenant: tenantId } = request.callerContext.caller;
  if (keyId === null) return;
  audit.record({ keyId, tenantId, route: routeOf(request), subject, ...whoOf(request) });
}

function whoOf(request: FastifyRequest) {
  return { address: addressOf(request), provenance: request.callerContext.provenance };
}

/** The tenants in whose logs the change is recorded: that of the caller, and the changed one. */
function tenantsOf({ routeOptions, callerContext, body, query }: FastifyRequest, subject: string | null) {
  const { tenant } = callerContext.caller;
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

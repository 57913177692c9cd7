import type { FastifyInstance, FastifyRequest } from "fastify";
import { within } from "../../clock/within.ts";
import type { TaskCaller } from "../../interface/keys.ts";
import type { Rota } from "../../interface/rota.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import { joinWithOr } from "../../model/input/field-checks.ts";
import type { Caller } from "../../model/role.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { isAllowed, PERMISSIONS, type Permission } from "../../tenants/permissions.ts";
import type { CallerContext } from "../caller-context.ts";
import { leadsToDashboard } from "../dashboard/serve-dashboard.ts";
import { chargeHead } from "./charge-requests.ts";
import { allowLocalOnly } from "./local-only.ts";
import { provenanceOf } from "./provenance.ts";
import type { RequestLimits } from "./request-limits.ts";
import { WorkerBuckets } from "./worker-buckets.ts";

export interface AdmissionOptions {
  readonly rota: Rota;
  /** Whether no other machine can reach the server. A local server needs no API key until one exists. */
  readonly isLocal: boolean;
  /** Whether browsers that open `/` are redirected to the dashboard, with or without a key. */
  readonly hasDashboard: boolean;
  readonly rateLimit: RequestLimits;
  readonly clock: Clock;
}

/** Health checks must respond even when the storage hangs, so an open route waits this long at most. */
const PATIENCE_MS = 500;

/** The caller of a server without keys. */
const LOCAL_CALLER: Caller = {
  tenant: DEFAULT_TENANT,
  role: "admin",
  agent: null,
  keyId: null,
  keyName: null,
};

/** Admits callers that may use the route, each with the view of their own tenant. Refuses all others before any work. */
export function admitCallers(app: FastifyInstance, options: AdmissionOptions): void {
  const { rota, isLocal, hasDashboard, rateLimit } = options;
  refuseRoutesWithoutAccess(app);
  const workerBuckets = new WorkerBuckets();
  workerBuckets.watch(app);
  app.decorateRequest("callerContext");
  app.decorateRequest("rota", {
    getter(this: FastifyRequest) {
      return this.callerContext.rota;
    },
  });
  app.addHook("onRequest", async (request) => {
    const access = hasDashboard && leadsToDashboard(request) ? "open" : request.routeOptions.config.access;
    if (access === "open") {
      if (isLocal && (await isSurelyKeyless(options))) allowLocalOnly(request);
      return;
    }
    const token = taskTokenOf(request);
    const task = token === undefined ? null : await identifyTask(token, rota);
    const isKeyless = isLocal && !(await rota.keys.any());
    if (isKeyless) allowLocalOnly(request);
    const keyed = isKeyless
      ? { caller: LOCAL_CALLER, key: null }
      : task !== null && request.headers.authorization === undefined
        ? null
        : await identify(request, rota);
    request.callerContext = contextOf(request, rota, { keyed, task, token });
    if (isKeyless && task === null) return;
    const { caller } = request.callerContext;
    const bucket = keyed?.caller.keyId ?? `task of ${caller.tenant} ${caller.agent}`;
    chargeHead(request, rateLimit, {
      key: workerBuckets.bucketOf(request, bucket),
      tenant: caller.tenant,
    });
    // Any valid key may learn that a route does not exist.
    if (access === undefined) return;
    if (keyed !== null) checkRole(keyed.caller, access);
    checkRole(caller, access);
  });
}

/** False also when it cannot be found out. */
async function isSurelyKeyless({ rota, clock }: AdmissionOptions): Promise<boolean> {
  const isKeyless = rota.keys.any().then(
    (any) => !any,
    () => false,
  );
  return within({ clock, ms: PATIENCE_MS, work: isKeyless, onLate: () => false });
}

/** Without this check, a route that names no permission would be open to every caller. */
function refuseRoutesWithoutAccess(app: FastifyInstance): void {
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.access === undefined) throw new Error(`${method} ${url} names no permission`);
  });
}

/** The caller of an API key. */
type Keyed = Pick<CallerContext, "caller" | "key">;

async function identify(request: FastifyRequest, rota: Rota): Promise<Keyed> {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    throw new RotaError("unauthorized", "an API key is missing: send it as `Authorization: Bearer rota_…`");
  }
  const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (key === undefined) {
    throw new RotaError("unauthorized", "`Authorization` must be `Bearer` and an API key: `Bearer rota_…`");
  }
  const caller = await rota.keys.callerOf(key);
  if (caller === null) {
    throw new RotaError(
      "unauthorized",
      "this API key is not known: it is mistyped, was deleted or has expired",
    );
  }
  return { caller, key };
}

function taskTokenOf({ headers }: FastifyRequest): string | undefined {
  const token = headers["x-rota-task-token"];
  return Array.isArray(token) ? token.join() : token;
}

async function identifyTask(token: string, rota: Rota): Promise<TaskCaller> {
  const task = await rota.keys.callerOfTask(token);
  if (task !== null) return task;
  throw new RotaError(
    "unauthorized",
    "this task token is not valid: it is mistyped, its attempt has ended, or the API key that submitted its task was deleted or has expired",
  );
}

interface Identified {
  /** Null: only a task token was sent. */
  readonly keyed: Keyed | null;
  /** Null: no task token was sent. */
  readonly task: TaskCaller | null;
  readonly token: string | undefined;
}

function contextOf(request: FastifyRequest, rota: Rota, { keyed, task, token }: Identified): CallerContext {
  const caller = task === null ? (keyed?.caller ?? LOCAL_CALLER) : withinTask(task, keyed?.caller);
  const provenance = provenanceOf(request, caller, task?.within ?? null);
  const { tenant, agent, bounds } = caller;
  const besideBounds = task === null ? undefined : keyed?.caller.bounds;
  const access = {
    provenance,
    ...(agent === null ? {} : { agentId: agent }),
    ...(bounds === undefined ? {} : { bounds }),
    ...(besideBounds === undefined ? {} : { besideBounds }),
    // A key for one agent does not submit to others, so neither do both together.
    ...(task === null ? {} : { delegates: keyed?.caller.role === "agent" ? [] : task.delegates }),
  };
  const role = keyed?.caller.role === "viewer" ? "viewer" : caller.role;
  const key = token ?? keyed?.key ?? null;
  return { caller, role, key, provenance, access, rota: rota.tenant(tenant, access) };
}

/** The caller of a task token, which may do no more than the key beside it. */
function withinTask(task: TaskCaller, keyed: Caller | undefined): Caller {
  const { tenant, agent, bounds } = task;
  const isOther = keyed !== undefined && (keyed.tenant !== tenant || (keyed.agent ?? agent) !== agent);
  if (isOther) {
    throw new RotaError(
      "forbidden",
      "the API key and the task token are for different tenants or agents: send one of them",
    );
  }
  return {
    ...{ tenant, role: "agent", agent, keyName: keyed?.keyName ?? null },
    keyId: keyed?.keyId ?? task.keyId,
    ...(bounds === undefined ? {} : { bounds }),
  };
}

function checkRole({ role }: Caller, access: Permission): void {
  if (isAllowed(role, access)) return;
  const allowed = PERMISSIONS[access].map((each) => `\`${each}\``);
  throw new RotaError(
    "forbidden",
    `the role \`${role}\` may not do this: use a key with the role ${joinWithOr(allowed)}`,
  );
}

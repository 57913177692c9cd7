import type { FastifyInstance, FastifyRequest } from "fastify";
import { within } from "../../clock/within.ts";
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
import type { RateLimit } from "./rate-limit.ts";
import { WorkerBuckets } from "./worker-buckets.ts";

export interface AdmissionOptions {
  readonly rota: Rota;
  /** Whether no other machine can reach the server. A local server needs no API key until one exists. */
  readonly isLocal: boolean;
  /** Whether browsers that open `/` are redirected to the dashboard, with or without a key. */
  readonly hasDashboard: boolean;
  readonly rateLimit: RateLimit;
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
    if (isLocal && !(await rota.keys.any())) {
      allowLocalOnly(request);
      request.callerContext = { caller: LOCAL_CALLER, rota: rota.tenant(LOCAL_CALLER.tenant), key: null };
      return;
    }
    request.callerContext = await identify(request, rota);
    const { caller } = request.callerContext;
    chargeHead(request, rateLimit, workerBuckets.bucketOf(request, caller.keyId as string));
    // Any valid key may learn that a route does not exist.
    if (access !== undefined) checkRole(caller, access);
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

async function identify({ headers }: FastifyRequest, rota: Rota): Promise<CallerContext> {
  const { authorization } = headers;
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
  const { tenant, agent } = caller;
  return { caller, key, rota: rota.tenant(tenant, agent === null ? {} : { agentId: agent }) };
}

function checkRole({ role }: Caller, access: Permission): void {
  if (isAllowed(role, access)) return;
  const allowed = PERMISSIONS[access].map((each) => `\`${each}\``);
  throw new RotaError(
    "forbidden",
    `the role \`${role}\` may not do this: use a key with the role ${joinWithOr(allowed)}`,
  );
}

import type { Engine } from "../../engine/engine.ts";
import type { DeliverableClaim, LocalWorkers, WorkerCaller, WorkerInfo } from "../../interface/workers.ts";
import { RotaError } from "../../model/errors.ts";
import { optionalNumber } from "../../model/input/field-checks.ts";
import {
  parseAttemptFinish,
  parseAttemptHeartbeat,
  parseClaim,
  parseFinish,
  parseHeartbeat,
  parseWorker,
} from "../../model/input/worker-schema.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { TURNS_MAX } from "../../model/turn.ts";
import {
  ATTEMPTS_PER_REQUEST_MAX,
  CLAIM_WAIT_S_MAX,
  RELEASED,
  TENANT_WORKERS_MAX,
  WORKERS_MAX,
  workerState,
} from "../../model/worker.ts";
import { ALL_AGENTS, type WorkerAttempt, type WorkerRecord } from "../../storage/storage.ts";
import { unknownWorker, WorkerClaims, type WorkerClaimsOptions } from "./worker-claims.ts";
import { parseWorkerPage, workerCursor } from "./worker-page.ts";

/** When a worker that found no room should register again: after a lease those that were killed no longer count. */
const FULL_RETRY_SEC = { min: 5, spread: 5 } as const;

/** What a worker learns about claims when it registers. */
const CLAIM_LIMITS = { maxWaitS: CLAIM_WAIT_S_MAX, finishesPerClaim: ATTEMPTS_PER_REQUEST_MAX } as const;

export interface WorkersOptions extends WorkerClaimsOptions {
  readonly newWorkerId: () => string;
  /** Names the executor that already runs the tasks of an agent, if workers may not; null: they may. */
  readonly executorOf: (agent: string) => string | null;
  /** Throws while the scheduler is disabled. */
  readonly checkEnabled: () => void;
  readonly checkNotGone: () => void;
}

export function createWorkers(options: WorkersOptions): LocalWorkers {
  const { tenant, storage, storageClock, engine, random } = options;
  const claims = new WorkerClaims(options);

  async function find(id: string): Promise<WorkerRecord> {
    const worker = id.includes("\0") ? null : await storage.workers.get({ tenant, id });
    if (worker === null) throw unknownWorker();
    return worker;
  }

  /** The worker, if the caller may act for it, as it registered: how many attempts it holds may be old. */
  async function findOwn(id: string, { keyId }: WorkerCaller): Promise<WorkerRecord> {
    const worker = id.includes("\0") ? null : await engine.workers.records.get(tenant, id);
    if (worker === null) throw unknownWorker();
    if (worker.key === keyId) return worker;
    throw new RotaError(
      "forbidden",
      "this worker was registered with another API key: use that key, or register the worker again with its `instanceId`",
    );
  }

  async function findAttempt(token: string, caller: WorkerCaller): Promise<Own> {
    const attempt = await engine.workers.attempts.findAny(token);
    if (attempt === null || attempt.tenant !== tenant) throw unknownAttempt();
    const worker = await findOwn(attempt.worker, caller);
    caller.onWorker?.(worker.id);
    return { attempt, worker };
  }

  function toInfo(worker: WorkerRecord): WorkerInfo {
    const { id, name, agents, slots, held, seenAt, version, runtime, labels, done, failed } = worker;
    return {
      ...{ id, name, agents, slots },
      running: held,
      state: workerState(worker, storageClock.now()),
      lastSeenAt: rfc3339(seenAt),
      ...{ version, runtime, labels },
      doneLast10m: done,
      failedLast10m: failed,
    };
  }

  function checkAgents(agents: readonly string[], caller: WorkerCaller): void {
    const { agents: allowed } = caller;
    const foreign = allowed === null ? undefined : agents.find((agent) => !allowed.includes(agent));
    if (foreign === ALL_AGENTS)
      throw new RotaError(
        "forbidden",
        '`agents`: "*" needs a key with the role `operator` or above: name the agents of this key instead',
      );
    if (foreign !== undefined)
      throw new RotaError(
        "forbidden",
        `\`agents\`: this API key may not run the agent "${foreign}", only ${(allowed ?? []).map((agent) => `"${agent}"`).join(", ")}: register only those, or use a key that names it`,
      );
    for (const agent of agents) {
      const executor = agent === ALL_AGENTS ? null : options.executorOf(agent);
      if (executor !== null) throw alreadyServed(agent, executor);
    }
  }

  async function remove(id: string): Promise<string[]> {
    const released = new Set<string>();
    for (;;) {
      const { requeued, failed } = await engine.workers.watch.takeBackAll(id, {
        counted: false,
        error: RELEASED,
      });
      for (const task of [...requeued, ...failed]) released.add(task.id);
      if (await storage.workers.remove({ tenant, id })) break;
      // A claim that was under way has got tasks meanwhile, or the worker is gone already. A draining worker gets no more tasks.
      if (!(await storage.workers.drain({ tenant, id }))) throw unknownWorker();
    }
    engine.workers.records.changed(id);
    return [...released];
  }

  function checkRegistered(worker: WorkerRecord, agents: readonly string[] = []): void {
    if (worker.agents.includes(ALL_AGENTS)) return;
    const foreign = agents.find((agent) => !worker.agents.includes(agent));
    if (foreign === undefined) return;
    throw new RotaError(
      "forbidden",
      `\`agents\`: this worker is not registered for the agent "${foreign}": register it again with that agent, or leave it out`,
    );
  }

  const resource: LocalWorkers = {
    async register(input, caller) {
      options.checkEnabled();
      options.checkNotGone();
      const parsed = parseWorker(input);
      checkAgents(parsed.agents, caller);
      const { name, instanceId = null, agents, slots, labels = {}, leaseMs, heartbeatMs } = parsed;
      const registered = await storage.workers.register({
        id: options.newWorkerId(),
        tenant,
        instance: instanceId,
        key: caller.keyId,
        ...{ name, agents, slots, labels, leaseMs, heartbeatMs },
        version: parsed.version ?? null,
        runtime: parsed.runtime ?? null,
      });
      if ("served" in registered)
        throw alreadyServed(
          registered.served,
          "that of another node, or of one that was here in the last 7 days",
        );
      if ("full" in registered) {
        const reached =
          registered.full === "tenant"
            ? `the tenant has ${TENANT_WORKERS_MAX} workers, which is its share of ${WORKERS_MAX}`
            : `there are ${WORKERS_MAX} workers, which is the limit of the installation`;
        // Workers that were killed without fixed `instanceId`s count until their leases have run out.
        throw new RotaError("quota_exceeded", `${reached}: delete one first, or use fewer with more slots`, {
          retryAfterSec: Math.round(FULL_RETRY_SEC.min + random() * FULL_RETRY_SEC.spread),
        });
      }
      engine.workers.records.changed(registered.id);
      const { id: worker, isNew } = registered;
      engine.workers.watch.registered({ worker, name, tenant, leaseMs, isNew });
      const now = rfc3339(storageClock.now());
      return { workerId: registered.id, leaseMs, heartbeatMs, ...CLAIM_LIMITS, now };
    },

    async claim(id, input, { gone, ...caller }): Promise<DeliverableClaim> {
      options.checkEnabled();
      const { finishes, ...claim } = parseClaim(input);
      const worker = await findOwn(id, caller);
      checkRegistered(worker, claim.agents);
      engine.workers.watch.sign(worker, { polls: true });
      if (finishes === undefined) return claims.respond(worker, { waitS: 0, ...claim, gone });
      const { attempts } = engine.workers;
      const { answers } = await attempts.beginFinish(id, finishes.map(toFinish));
      const claimed = await claims.respond(worker, { ...claim, waitS: 0, gone });
      try {
        return { ...claimed, answer: { ...claimed.answer, finished: await answers } };
      } catch (error) {
        await claimed.ended({ sent: false });
        throw error;
      }
    },

    async heartbeat(id, input, caller) {
      const reports = parseHeartbeat(input);
      const worker = await findOwn(id, caller);
      engine.workers.watch.sign(worker, { polls: false });
      const attempts = await engine.workers.attempts.heartbeat(id, reports.map(toReport), { all: true });
      return { attempts, ...statusOf(worker) };
    },

    async finish(id, input, caller) {
      const finishes = parseFinish(input);
      const worker = await findOwn(id, caller);
      engine.workers.watch.sign(worker, { polls: false });
      return { attempts: await engine.workers.attempts.finish(id, finishes.map(toFinish)) };
    },

    async signals(id, caller) {
      const worker = await findOwn(id, caller);
      engine.workers.watch.sign(worker, { polls: false });
      return engine.workers.signals.open(worker);
    },

    async heartbeatAttempt(token, input, caller) {
      const report = parseAttemptHeartbeat(token, input);
      const { worker } = await findAttempt(token, caller);
      engine.workers.watch.sign(worker, { polls: false });
      const [answer] = await engine.workers.attempts.heartbeat(worker.id, [toReport(report)], { all: false });
      if (answer === undefined) throw unknownAttempt();
      return { ...answer, ...statusOf(worker) };
    },

    async finishAttempt(token, input, caller) {
      const finish = parseAttemptFinish(token, input);
      const { worker } = await findAttempt(token, caller);
      engine.workers.watch.sign(worker, { polls: false });
      const [answer] = await engine.workers.attempts.finish(worker.id, [toFinish(finish)]);
      if (answer === undefined) throw unknownAttempt();
      return answer;
    },

    async dependency(token, taskId, caller) {
      const { attempt } = await findAttempt(token, caller);
      const record = await storage.tasks.get({ tenant, id: attempt.taskId });
      if (!attempt.held || record === null) throw unknownAttempt();
      if (!record.spec.dependsOn?.includes(taskId))
        throw new RotaError("not_found", `the task of this attempt does not depend on a task "${taskId}"`);
      const [stored] = await storage.tasks.dependencyResults({
        seq: record.seq,
        ids: [taskId],
        bytesMax: Number.MAX_SAFE_INTEGER,
      });
      if (stored === undefined || stored.result === null)
        throw new RotaError(
          "not_found",
          "the result of this dependency is no longer kept: raise `resultTTLSec`, or put the data into the task",
        );
      return { taskId, result: JSON.parse(stored.result) };
    },

    async session(token, params, caller) {
      const turns = optionalNumber({ ...params }, "turns", { min: 0, max: TURNS_MAX }) ?? 0;
      const { attempt } = await findAttempt(token, caller);
      const record = await storage.tasks.get({ tenant, id: attempt.taskId });
      if (!attempt.held || record === null) throw unknownAttempt();
      if (record.session === null) return { session: null };
      const { seq, token: fence } = attempt;
      const read = await storage.sessions.readTurns({ seq, token: fence, limit: turns });
      if (read === null) throw unknownAttempt();
      const { turnsLength: _, ...session } = read;
      return { session };
    },

    async deleteOwn(id, caller) {
      await findOwn(id, caller);
      return { released: await remove(id) };
    },

    async list(page = {}) {
      const { limit, ...from } = parseWorkerPage({ ...page });
      const found = await storage.workers.list({ tenant, ...from, limit: limit + 1 });
      const workers = found.slice(0, limit);
      const last = found.length > limit ? workers.at(-1) : undefined;
      return {
        workers: workers.map(toInfo),
        count: workers.length,
        nextCursor: last === undefined ? null : workerCursor(last),
      };
    },

    get: async (id) => toInfo(await find(id)),

    async drain(id) {
      if (id.includes("\0") || !(await storage.workers.drain({ tenant, id }))) throw unknownWorker();
      engine.workers.records.changed(id);
      return resource.get(id);
    },

    async delete(id) {
      await find(id);
      return { released: await remove(id) };
    },
  };

  function statusOf({ draining, leaseMs }: WorkerRecord) {
    return { drain: draining, now: rfc3339(storageClock.now()), leaseMs };
  }

  return resource;
}

function alreadyServed(agentId: string, executor: string): RotaError {
  return new RotaError(
    "conflict",
    `the agent "${agentId}" already has an executor: ${executor}. Give the agent the executor {"type": "worker"}, or register another agent`,
    { details: { agentId } },
  );
}

interface Own {
  readonly attempt: WorkerAttempt;
  readonly worker: WorkerRecord;
}

type Report = Parameters<Engine["workers"]["attempts"]["heartbeat"]>[1][number];
type Finish = Parameters<Engine["workers"]["attempts"]["finish"]>[1][number];

function toReport(report: ReturnType<typeof parseAttemptHeartbeat>): Report {
  const { attemptToken, progress, usage, log, messagesAfter } = report;
  return {
    attemptToken,
    ...(messagesAfter === undefined ? {} : { messagesAfter }),
    ...(progress === undefined ? {} : { progress }),
    ...(usage === undefined ? {} : { usage }),
    ...(log === undefined
      ? {}
      : { log: log.map(({ at, level = "info", text }) => ({ at: at ?? null, level, text })) }),
  };
}

function toFinish({ retryable = true, usage, ...finish }: ReturnType<typeof parseAttemptFinish>): Finish {
  return { ...finish, retryable, ...(usage === undefined ? {} : { usage }) };
}

function unknownAttempt(): RotaError {
  return new RotaError("not_found", "attempt not found: it ended a while ago, or the token is mistyped");
}

import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { Engine } from "../../engine/engine.ts";
import { tokenOf } from "../../engine/workers/attempt-token.ts";
import type { EmptyReason, PollAnswer } from "../../engine/workers/worker-polls.ts";
import type { ClaimAnswer, ClaimedAttempt, DeliverableClaim } from "../../interface/workers.ts";
import { taskJson } from "../../model/dependency-result.ts";
import { RotaError } from "../../model/errors.ts";
import type { DependencyResult } from "../../model/task.ts";
import { type TaskRecord, toExecutorTask } from "../../model/task-record.ts";
import { CLAIM_BYTES_MAX, WORKERS_MAX } from "../../model/worker.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import {
  type AssignedTask,
  CLAIMED_PER_POLL_MAX,
  type Storage,
  type WorkerRecord,
} from "../../storage/storage.ts";

/** Bytes of claimed tasks that are serialized before other requests get their turn: a few milliseconds. */
const SERIALIZED_PER_TURN = 524_288;

/** When a worker that got nothing should ask again, and by how much that varies: they must not all ask at the same time. */
const RETRY_IN_MS = { draining: 2_000, nearlyFull: 500, spread: 1_000 } as const;

export interface WorkerClaimsOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly engine: Engine;
  readonly random: () => number;
  /** The agents that a worker with these labels may not run. */
  readonly excluded: (labels: WorkerRecord["labels"]) => readonly string[];
  readonly contextWindow: (record: TaskRecord) => number | undefined;
  /** The token with which an attempt calls Rota. `fence`: its fencing token. */
  readonly taskToken: (record: TaskRecord, fence: number) => string;
  readonly isDraining: () => boolean;
}

export interface ClaimParams {
  readonly claimId: string;
  readonly max: number;
  readonly waitS: number;
  /** Only tasks of these of its agents; undefined: of all. */
  readonly agents?: readonly string[] | undefined;
  /** Fires when the connection of the worker is gone. */
  readonly gone: AbortSignal;
}

/** Claims of the workers of one tenant: they wait for tasks, and get as many as fit into a response. */
export class WorkerClaims {
  readonly #options: WorkerClaimsOptions;
  readonly #sizes = new ClaimSizes();

  constructor(options: WorkerClaimsOptions) {
    this.#options = options;
  }

  /** Waits for tasks. Throws `unknown_worker`, and `too_many_polls`. */
  async respond(worker: WorkerRecord, params: ClaimParams): Promise<DeliverableClaim> {
    const { isDraining, random } = this.#options;
    if (worker.lost) await this.#renew(worker);
    if (worker.draining) return undeliverable({ attempts: [], drain: true });
    if (isDraining()) return undeliverable(drained(random));
    let answer = await this.#poll(worker, params);
    if (answer.empty === "gone") {
      // Lost a moment ago: this claim is a sign of life.
      await this.#renew(worker);
      answer = await this.#poll(worker, params);
    }
    return answer.empty === undefined
      ? this.#deliver(worker, params.claimId, answer.assigned)
      : undeliverable(this.#emptyAnswer(answer.empty));
  }

  /** Stores a sign of life of a worker that counts as lost. */
  async #renew({ id }: WorkerRecord): Promise<void> {
    const { storage, engine } = this.#options;
    const { unknown } = await storage.workers.renew({ signs: [{ worker: id, polls: true }] });
    engine.workers.records.changed(id);
    if (unknown.length > 0) throw unknownWorker();
  }

  #poll(worker: WorkerRecord, { claimId, max, waitS, agents, gone }: ClaimParams): Promise<PollAnswer> {
    const { engine, excluded, random } = this.#options;
    return engine.workers.dispatcher.poll({
      worker,
      claimId,
      max: Math.min(max, this.#sizes.maxOf(worker.id)),
      agents: agents ?? null,
      except: () => excluded(worker.labels),
      // Polls that began together must not all end at once. The dispatcher shortens long ones by up to a second more.
      waitMs: waitS * 1_000 * (0.9 + 0.1 * random()),
      gone,
    });
  }

  #emptyAnswer(why: EmptyReason): ClaimAnswer {
    const { engine, tenant, random } = this.#options;
    if (why === "gone") throw unknownWorker();
    if (why === "drained") return { attempts: [], drain: true };
    if (why === "draining") return drained(random);
    const isNearlyFull = engine.workers.dispatcher.polls.isNearlyFull(tenant);
    return { attempts: [], ...(isNearlyFull && { retryInMs: retryInMs("nearlyFull", random) }) };
  }

  /** What does not fit into the response goes back. */
  async #deliver(
    worker: WorkerRecord,
    claimId: string,
    assigned: readonly AssignedTask[],
  ): Promise<DeliverableClaim> {
    const { dispatcher } = this.#options.engine.workers;
    const { id } = worker;
    const delivery = dispatcher.deliver(id, claimId, assigned);
    try {
      const { attempts, taskTexts, left } = await this.#serialized(worker, claimId, assigned);
      this.#sizes.learn(id, { delivered: attempts.length, left: left.length });
      delivery.hasOnly(assigned.slice(0, attempts.length));
      await dispatcher.putBack(id, left);
      return { answer: { attempts }, taskTexts, ended: delivery.end };
    } catch (error) {
      await delivery.end({ sent: false });
      throw error;
    }
  }

  /** The first of these attempts, as many as fit into a response, with the texts of their tasks. */
  async #serialized(
    worker: WorkerRecord,
    claimId: string,
    assigned: readonly AssignedTask[],
  ): Promise<{ attempts: ClaimedAttempt[]; taskTexts: string[]; left: readonly AssignedTask[] }> {
    const attempts: ClaimedAttempt[] = [];
    const taskTexts: string[] = [];
    let bytes = 0;
    let yieldedAt = 0;
    for (const [index, each] of assigned.entries()) {
      const dependencies =
        each.task.spec.dependsOn && (await this.#readDependencies(each.task, CLAIM_BYTES_MAX - bytes));
      const attempt = this.#toAttempt(each, { claimId, leaseMs: worker.leaseMs, dependencies });
      const text = taskJson(attempt.task);
      const size = Buffer.byteLength(text);
      // The others would have to be serialized to know whether one of them fits.
      if (attempts.length > 0 && bytes + size > CLAIM_BYTES_MAX)
        return { attempts, taskTexts, left: assigned.slice(index) };
      bytes += size;
      attempts.push(attempt);
      taskTexts.push(text);
      if (bytes - yieldedAt < SERIALIZED_PER_TURN) continue;
      yieldedAt = bytes;
      await yieldToOthers();
    }
    return { attempts, taskTexts, left: [] };
  }

  #toAttempt(
    { nonce, token, task: record, assignedAt }: AssignedTask,
    given: {
      readonly claimId: string;
      readonly leaseMs: number;
      readonly dependencies: DependencyResult[] | undefined;
    },
  ): ClaimedAttempt {
    const { tenant, storageClock, taskToken } = this.#options;
    const { claimId, leaseMs, dependencies } = given;
    const now = storageClock.now();
    const { timeoutMs } = record.spec;
    const contextWindow = this.#options.contextWindow(record);
    return {
      attemptToken: tokenOf(nonce, claimId),
      taskToken: taskToken(record, token),
      number: record.attempts.at(-1)?.number ?? 1,
      leaseMs,
      timeoutMs: timeoutMs === null ? null : Math.max(timeoutMs - (now - assignedAt), 0),
      ...(record.deadline === null ? {} : { deadlineInMs: Math.max(record.deadline - now, 0) }),
      tenantId: tenant,
      ...(contextWindow === undefined ? {} : { contextWindow }),
      task: { ...toExecutorTask(record), ...(dependencies && { dependencies }) },
    };
  }

  /** The results that fit; the worker reads the others one by one. */
  async #readDependencies(record: TaskRecord, bytesLeft: number): Promise<DependencyResult[]> {
    const { dependencies } = this.#options.engine.workers;
    const { results } = await dependencies.read(record, new AbortController().signal);
    let left = bytesLeft;
    return results.map((dependency) => {
      if ("omitted" in dependency) return dependency;
      const size = Buffer.byteLength(JSON.stringify(dependency.result) ?? "null");
      left -= size;
      return left >= 0 ? dependency : { taskId: dependency.taskId, resultBytes: size, omitted: true };
    });
  }
}

/**
 * How many tasks the claims of a worker ask for, if fewer than it wants fitted into a response. All others would be claimed, read and
 * put back each time.
 */
class ClaimSizes {
  /** By worker; the oldest goes first. */
  readonly #max = new Map<string, number>();

  maxOf(worker: string): number {
    return this.#max.get(worker) ?? CLAIMED_PER_POLL_MAX;
  }

  /** A response had room for `delivered` tasks, and for `left` more it had not. */
  learn(worker: string, { delivered, left }: { delivered: number; left: number }): void {
    const max = this.maxOf(worker);
    // Grows again with each full response.
    const next = left > 0 ? delivered + 1 : delivered >= max ? 2 * max : max;
    this.#max.delete(worker);
    if (next >= CLAIMED_PER_POLL_MAX) return;
    if (this.#max.size >= WORKERS_MAX) this.#max.delete(this.#max.keys().next().value ?? "");
    this.#max.set(worker, next);
  }
}

function undeliverable(answer: ClaimAnswer): DeliverableClaim {
  return { answer, taskTexts: [], ended: async () => {} };
}

/** This node stops: the worker asks again once another node, or the next process, has taken over. */
function drained(random: () => number): ClaimAnswer {
  return { attempts: [], drain: true, retryInMs: retryInMs("draining", random) };
}

function retryInMs(why: "draining" | "nearlyFull", random: () => number): number {
  return Math.round(RETRY_IN_MS[why] + random() * RETRY_IN_MS.spread);
}

export function unknownWorker(): RotaError {
  return new RotaError("unknown_worker", "worker not found: register it again with `POST /v1/workers`");
}

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { claimAnswer } from "../../src/api/workers.ts";
import type { Answer } from "./http.ts";

/** One request of a worker, or about one. */
export type Ask = (
  path: string,
  init?: { readonly method?: string; readonly json?: unknown },
) => Promise<Answer>;

/** The attempts of a response to a claim. */
export interface Claimed {
  readonly attempts: readonly {
    readonly attemptToken: string;
    readonly number: number;
    readonly task: { readonly taskId: string; readonly agentId: string };
  }[];
  readonly drain?: true;
  readonly retryInMs?: number;
}

export async function registerWorker(ask: Ask, more: Record<string, unknown> = {}): Promise<string> {
  const json = { name: "w", agents: ["py"], slots: 2, ...more };
  const { status, body } = await ask("/v1/workers", { json });
  expect(status, body.error).toBe(201);
  return body.workerId;
}

export async function claimTasks(
  ask: Ask,
  worker: string,
  more: Record<string, unknown> = {},
): Promise<Claimed> {
  const json = { claimId: randomUUID(), max: 2, waitS: 5, ...more };
  const { status, body } = await ask(`/v1/workers/${worker}/claim`, { json });
  expect(status, body.error).toBe(200);
  claimAnswer.parse(body);
  return body;
}

/** Claims one task, which must be there. */
export async function claimOne(ask: Ask, worker: string): Promise<Claimed["attempts"][number]> {
  const { attempts } = await claimTasks(ask, worker, { max: 1 });
  const [attempt] = attempts;
  if (attempt === undefined) throw new Error("There was no task.");
  return attempt;
}

/** Submits a task for the agent `py` and returns its id. */
export async function submitTask(ask: Ask, more: Record<string, unknown> = {}): Promise<string> {
  const { body } = await ask("/tasks", { json: { agentId: "py", payload: { n: 1 }, ...more } });
  return body.taskId;
}

/** Resolves once exactly this many claims wait on the server. */
export async function claimsWait(ask: Ask, count: number): Promise<void> {
  const waiting = async () =>
    /^rota_worker_claims_waiting (\d+)$/m.exec((await ask("/metrics")).body as string)?.[1];
  await expect.poll(waiting, { interval: 5 }).toBe(String(count));
}

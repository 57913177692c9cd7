import type { Rota } from "../src/interface/rota.ts";
import { createRota } from "../src/rota.ts";

/** What one process runs at once, unless a measurement says otherwise. */
export const AT_ONCE = 50;
export const AGENTS = 20;

/** Room for any backlog: what is measured is never refused. */
const NO_LIMIT = 10_000_000;

export type Handler = () => unknown;

/** A Rota as a busy user would set it up: fair, with limits, none of which are in the way. */
export function openRota(
  url: string,
  {
    handler = () => null,
    atOnce = AT_ONCE,
    nodes = 1,
  }: { handler?: Handler; atOnce?: number; nodes?: number },
): Promise<Rota> {
  return createRota({
    storage: url,
    scheduler: schedulerOptions({ atOnce, nodes }),
    // By kind rather than by agent, so that fifty thousand agents need not be introduced one by one.
    executors: { custom: handler },
  });
}

/** How many tasks a node may hold for each slot: the one that runs, and those that are claimed ahead. */
const HELD_PER_SLOT = 5;

export function schedulerOptions({ atOnce, nodes = 1 }: { atOnce: number; nodes?: number }) {
  return {
    workerCount: atOnce,
    maxInflight: atOnce * nodes * HELD_PER_SLOT,
    maxPerAgentInflight: atOnce * nodes,
    maxQueueSize: NO_LIMIT,
    maxPerAgent: NO_LIMIT,
  };
}

export function taskInputs(count: number, agents = AGENTS): TaskInput[] {
  return Array.from({ length: count }, (_, n) => taskInput(n, agents));
}

export function taskInput(n: number, agents = AGENTS): TaskInput {
  return { agentId: `agent-${n % agents}`, payload: { n }, retryPolicy: RETRIED };
}

/** As the tasks of most users, and of the peers by default. */
export const RETRIED = { maxRetries: 3 } as const;

interface TaskInput {
  readonly agentId: string;
  readonly payload: { readonly n: number };
  readonly retryPolicy: typeof RETRIED;
}

export interface BacklogParams {
  readonly count: number;
  readonly agents?: number;
  readonly perCall?: number;
  /** The session of each task, by its number; left out: they have none. */
  readonly sessionOf?: ((n: number) => string) | undefined;
}

/** Makes `count` tasks wait. */
export async function loadBacklog(rota: Pick<Rota, "tasks">, params: BacklogParams): Promise<void> {
  const { count, agents = AGENTS, perCall = 1_000, sessionOf } = params;
  const input = (n: number) => {
    const task = taskInput(n, agents);
    return sessionOf === undefined ? task : { ...task, sessionKey: sessionOf(n) };
  };
  for (let from = 0; from < count; from += perCall) {
    const size = Math.min(perCall, count - from);
    await rota.tasks.submitMany(Array.from({ length: size }, (_, n) => input(from + n)));
  }
}

/** A handler that does nothing but count, and promises that resolve when so many have been started. */
export class StartCounter {
  #started = 0;
  readonly #marks = new Map<number, (at: number) => void>();

  readonly handler: Handler = () => {
    this.#started += 1;
    this.#marks.get(this.#started)?.(performance.now());
    return null;
  };

  /** The moment at which the `count`th task was started. */
  reached(count: number): Promise<number> {
    return new Promise((resolve) => this.#marks.set(count, resolve));
  }
}

export function perSecond(count: number, elapsedMs: number): number {
  return (count / elapsedMs) * 1_000;
}

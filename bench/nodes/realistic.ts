import { setTimeout as sleep } from "node:timers/promises";
import type { Rota } from "../../src/interface/rota.ts";
import { type NewStorage, withStorage } from "../empty-storage.ts";
import { loadBacklog, openRota, perSecond, taskInput } from "../workload.ts";
import { NodeProcess } from "./node-process.ts";

/** What users of several nodes have: tasks that take a while, many agents, and new tasks all the time. */
const REALISTIC = { slots: 400, taskMs: 100, agents: 50, submitsPerSec: 2_000 } as const;
/** Not measured: connections, plans and code are cold, and the slots fill. */
const WARM_UP_MS = 3_000;
/** How often the next submits are made: some at once, as requests arrive. */
const SUBMIT_EVERY_MS = 10;

export interface RealisticRun {
  /** Tasks started, of those that as many slots can start if none is ever empty. */
  readonly share: number;
  /** Of each submit. */
  readonly submitMs: readonly number[];
}

/** Runs tasks in `REALISTIC.slots` slots on so many nodes while another process submits more. */
export function measureRealistic(
  newStorage: NewStorage,
  { nodes, seconds }: { nodes: number; seconds: number },
): Promise<RealisticRun> {
  const { slots, taskMs, agents } = REALISTIC;
  const idealPerSec = (slots / taskMs) * 1_000;
  return withStorage(newStorage, async (target) => {
    const submitter = await openRota(target.url, { nodes, atOnce: slots / nodes });
    // It outlasts the measurement, whatever is submitted besides.
    await loadBacklog(submitter, { count: idealPerSec * (seconds + WARM_UP_MS / 1_000), agents });
    await target.settle();
    const atOnce = slots / nodes;
    const processes = await Promise.all(
      Array.from({ length: nodes }, () => NodeProcess.open(target.url, { nodes, atOnce, taskMs })),
    );
    const stop = new AbortController();
    try {
      for (const node of processes) node.start();
      const submitMs: number[] = [];
      const submitting = submitSteadily(submitter, submitMs, stop.signal);
      await sleep(WARM_UP_MS);
      submitMs.length = 0;
      const started = () => processes.reduce((sum, node) => sum + node.started, 0);
      const before = started();
      const begun = performance.now();
      await sleep(seconds * 1_000);
      const rate = perSecond(started() - before, performance.now() - begun);
      stop.abort();
      await submitting;
      return { share: rate / idealPerSec, submitMs };
    } finally {
      stop.abort();
      await Promise.all(processes.map((node) => node.leave()));
      await submitter.stop();
    }
  });
}

/** Makes up for turns that came late, so that as many submits are made whatever they take. */
async function submitSteadily(rota: Rota, submitMs: number[], stopped: AbortSignal): Promise<void> {
  const begun = performance.now();
  const open = new Set<Promise<void>>();
  for (let made = 0; !stopped.aborted; await sleep(SUBMIT_EVERY_MS)) {
    const due = ((performance.now() - begun) / 1_000) * REALISTIC.submitsPerSec;
    for (; made < due; made += 1) {
      const submit = timeSubmit(rota, made, submitMs).finally(() => open.delete(submit));
      open.add(submit);
    }
  }
  await Promise.all(open);
}

async function timeSubmit(rota: Rota, n: number, submitMs: number[]): Promise<void> {
  const begun = performance.now();
  await rota.tasks.submit(taskInput(n, REALISTIC.agents));
  submitMs.push(performance.now() - begun);
}

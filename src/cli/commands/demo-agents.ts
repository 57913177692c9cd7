import { setTimeout as sleep } from "node:timers/promises";
import type { Rota } from "../../interface/rota.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";

/** How long one round of the demo takes, its backlog included. */
export const ROUND_MS = 25_000;
export const DEMO_SESSION = "customer-42";

/** Agents that only pretend to work. Each shows one rule of the queue. */
export function addDemoAgents(rota: Rota, random: () => number): void {
  const between = (minMs: number, maxMs: number) => minMs + random() * (maxMs - minMs);

  // Submits many tasks at once, and yet does not delay the agents that submit few.
  rota.agent("greedy", async (_task, { signal, progress }) => {
    for (let page = 1; page <= 4; page++) {
      progress({ page, of: 4 });
      await sleep(between(300, 700), undefined, { signal });
    }
    return { pages: 4 };
  });

  rota.agent("small", async (task, { signal }) => {
    await sleep(between(500, 1_000), undefined, { signal });
    return `${task.instruction}: done`;
  });

  // One task at a time, however long its queue is.
  rota.agent("crawler", { maxInflight: 1 }, async (task, { signal }) => {
    await sleep(between(600, 1_200), undefined, { signal });
    return { visited: task.payload };
  });

  // Fails once, so that each of its tasks is retried.
  rota.agent("flaky", async (task, { signal }) => {
    await sleep(between(200, 600), undefined, { signal });
    if (task.attempts.length === 1) throw new Error("HTTP 503: the site is overloaded");
    return "the second attempt worked";
  });

  // Gives its slot to critical tasks, and begins again afterwards.
  rota.agent("archivist", async (_task, { signal, progress }) => {
    for (let percent = 0; percent < 100; percent += 10) {
      progress({ percent });
      await sleep(500, undefined, { signal });
    }
    return "the archive is sorted";
  });

  rota.agent("pager", async (_task, { signal }) => {
    await sleep(1_500, undefined, { signal });
    return "the alert is resolved";
  });

  rota.agent("support", async (task, { signal }) => {
    await sleep(between(800, 1_600), undefined, { signal });
    return `Thank you for asking: ${task.message}`;
  });

  rota.agent("reporter", async (_task, { signal }) => {
    await sleep(between(300, 600), undefined, { signal });
    return "the report is sent";
  });
}

/** A part of a round, and how long after its start it is submitted. */
export interface DemoStep {
  readonly atMs: number;
  readonly tasks?: readonly SubmitInput[];
  /** A message to the session of the demo. */
  readonly message?: string;
}

const SITES = ["shop.example", "news.example", "docs.example", "jobs.example"];

/** One round: a backlog, and what the scheduler makes of it. */
export const DEMO_STEPS: readonly DemoStep[] = [
  {
    atMs: 0,
    tasks: [1, 2].map((part) => ({
      agentId: "archivist",
      instruction: `Sort part ${part} of the archive`,
      priority: "low",
      preemptible: true,
    })),
  },
  {
    atMs: 200,
    tasks: Array.from({ length: 14 }, (_, index) => ({
      agentId: "greedy",
      instruction: `Read report ${index + 1} of 14`,
      priority: index === 13 ? "high" : "normal",
    })),
  },
  {
    atMs: 400,
    tasks: [
      ...SITES.map((site) => ({ agentId: "crawler", payload: { url: `https://${site}/` } })),
      { agentId: "flaky", instruction: "Check the price", retryPolicy: { maxRetries: 2, backoffMs: 1_000 } },
    ],
  },
  { atMs: 600, message: "Where is my order?" },
  { atMs: 1_000, tasks: [{ agentId: "pager", instruction: "The disk is full", priority: "critical" }] },
  { atMs: 1_600, tasks: [{ agentId: "small", instruction: "Translate one sentence" }] },
  { atMs: 4_000, message: "It should have come yesterday." },
  { atMs: 6_000, tasks: [{ agentId: "small", instruction: "Add two numbers" }] },
];

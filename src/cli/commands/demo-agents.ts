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
  /** What the viewer sees happen. */
  readonly says: string;
  readonly tasks?: readonly SubmitInput[];
  /** A message to the session of the demo. */
  readonly message?: string;
}

const SITES = ["shop.example", "news.example", "docs.example", "jobs.example"];

/** One round: a backlog, and what the scheduler makes of it. */
export const DEMO_STEPS: readonly DemoStep[] = [
  {
    atMs: 0,
    says: "archivist starts two tasks of low priority. Critical tasks may pre-empt them.",
    tasks: [1, 2].map((part) => ({
      agentId: "archivist",
      instruction: `Sort part ${part} of the archive`,
      priority: "low",
      preemptible: true,
    })),
  },
  {
    atMs: 1_000,
    says: "greedy submits 14 tasks at once. All four slots are busy, so most of them wait.",
    tasks: Array.from({ length: 14 }, (_, index) => ({
      agentId: "greedy",
      instruction: `Read report ${index + 1} of 14`,
      priority: index === 13 ? "high" : "normal",
    })),
  },
  {
    atMs: 2_500,
    says: "pager submits a critical task. It takes the slot of archivist, which begins again later.",
    tasks: [{ agentId: "pager", instruction: "The disk is full", priority: "critical" }],
  },
  {
    atMs: 4_500,
    says: "crawler runs one task at a time (maxInflight 1). flaky fails, and is retried a second later.",
    tasks: [
      ...SITES.map((site) => ({ agentId: "crawler", payload: { url: `https://${site}/` } })),
      { agentId: "flaky", instruction: "Check the price", retryPolicy: { maxRetries: 2, backoffMs: 1_000 } },
    ],
  },
  {
    atMs: 6_500,
    says: "small submits one task. It does not wait for the backlog of greedy: agents share the slots.",
    tasks: [{ agentId: "small", instruction: "Translate one sentence" }],
  },
  {
    atMs: 8_500,
    says: "A customer writes to support. Messages of a session run in order, here in the lane main.",
    message: "Where is my order?",
  },
  {
    atMs: 12_000,
    says: "The customer writes again. Meanwhile a schedule starts reporter every 10 seconds.",
    message: "It should have come yesterday.",
  },
];

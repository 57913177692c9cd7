import { setTimeout as sleep } from "node:timers/promises";
import type { Rota } from "../../interface/rota.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";

/** Agents that only pretend to work, each in its own way: slow, quick, one at a time, unreliable. */
export function addDemoAgents(rota: Rota, random: () => number): void {
  const between = (minMs: number, maxMs: number) => minMs + random() * (maxMs - minMs);

  rota.agent("researcher", async (_task, { signal, progress }) => {
    const pages = 3 + Math.floor(random() * 5);
    for (let page = 1; page <= pages; page++) {
      progress({ read: page, of: pages });
      await sleep(between(300, 900), undefined, { signal });
    }
    return { pages, summary: "It is all quite interesting." };
  });

  rota.agent("writer", async (task, { signal }) => {
    await sleep(between(200, 1_500), undefined, { signal });
    return `Dear reader, ${task.message ?? ""}`;
  });

  // One at a time, however long its queue is.
  rota.agent("crawler", { maxInflight: 1 }, async (task, { signal }) => {
    await sleep(between(400, 1_200), undefined, { signal });
    return { visited: task.payload };
  });

  rota.agent("flaky", async (_task, { signal }) => {
    await sleep(between(100, 800), undefined, { signal });
    if (random() < 0.5) throw new Error("the other side hung up");
    return "made it";
  });
}

const TASKS: readonly SubmitInput[] = [
  { agentId: "researcher", instruction: "Find out what is new about schedulers" },
  { agentId: "researcher", instruction: "Compare three ways to keep a queue", priority: "high" },
  {
    agentId: "researcher",
    instruction: "Look up the weather",
    timeout: 2_000,
    retryPolicy: { maxRetries: 1 },
  },
  { agentId: "writer", message: "thank you for your letter." },
  { agentId: "writer", message: "the report is ready.", priority: "critical" },
  { agentId: "crawler", payload: { url: "https://example.com/" } },
  { agentId: "crawler", payload: { url: "https://example.org/" }, priority: "low" },
  { agentId: "flaky", instruction: "Call the other side", retryPolicy: { maxRetries: 2, backoffMs: 500 } },
  { agentId: "index", message: "echo" },
];

/** A random task. */
export function someTask(random: () => number): SubmitInput {
  return TASKS[Math.floor(random() * TASKS.length)] as SubmitInput;
}

import type { Rota } from "../../interface/rota.ts";

export interface DemoWorld {
  /** Rejects if the signal fires first. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A number from 0 up to 1. */
  readonly random: () => number;
}

const CONTEXT_WINDOW = 200_000;

/** What customers ask, and the answers. */
export const TALK: readonly (readonly [question: string, answer: string])[] = [
  ["Where is my order?", "It left the warehouse yesterday. It arrives tomorrow before noon."],
  ["Can it go to the office instead?", "Yes. I have changed the address to 12 Harbour Street."],
  ["And when does the refund arrive?", "It was sent today. Banks take two to three days."],
  ["Do you have it in blue?", "Blue is back in stock on Monday. Shall I reserve one?"],
  ["Yes, please.", "Done: one is reserved for you until Friday."],
  ["How do I return the old one?", "Print the label I have sent you, and hand it in at any post office."],
];

const ANSWERS: ReadonlyMap<string, string> = new Map(TALK);
/** The portal refuses it every time. */
export const LOG_IN = "Log in to the supplier portal";

/** Agents that only pretend to work. Each shows one rule of the queue. */
export function addDemoAgents(rota: Rota, { sleep, random }: DemoWorld): void {
  const between = (min: number, max: number) => min + random() * (max - min);
  /** As a model reports them. */
  const tokens = (few: number) => ({
    inputTokens: Math.round(between(few, 3 * few)),
    outputTokens: Math.round(between(few / 9, few / 3)),
  });

  // Submits many tasks at once, and yet does not delay the agents that submit few.
  rota.agent("greedy", async (_task, context) => {
    for (let page = 1; page <= 4; page++) {
      context.progress({ page, of: 4 });
      context.log.info({}, `reads page ${page} of 4`);
      await sleep(between(300, 700), context.signal);
      context.usage(tokens(900));
    }
    return { pages: 4, summary: "Sales grew by 4 %, costs by 2 %." };
  });

  rota.agent("small", async (task, context) => {
    await sleep(between(500, 1_000), context.signal);
    context.usage(tokens(400));
    return `${task.instruction}: done`;
  });

  // One task at a time, however long its queue is.
  rota.agent("crawler", { maxInflight: 1 }, async (task, { signal }) => {
    await sleep(between(600, 1_200), signal);
    return { visited: task.payload ?? task.instruction, status: 200 };
  });

  // Fails once, so that each of its tasks is retried; one kind of task fails for good.
  rota.agent("flaky", async (task, { signal, log }) => {
    log.info({}, "opens the page");
    await sleep(between(200, 600), signal);
    if (task.instruction === LOG_IN) throw new Error("HTTP 403: the portal refuses this account");
    if (task.attempts.length === 1) throw new Error("HTTP 503: the site is overloaded");
    return "the second attempt worked";
  });

  // Gives its slot to critical tasks, and begins again afterwards.
  rota.agent("archivist", async (_task, { signal, progress }) => {
    for (let percent = 0; percent < 100; percent += 10) {
      progress({ percent });
      await sleep(500, signal);
    }
    return "the archive is sorted";
  });

  rota.agent("pager", async (_task, { signal }) => {
    await sleep(1_500, signal);
    return "the alert is resolved";
  });

  rota.agent("support", async (task, context) => {
    await sleep(between(800, 1_600), context.signal);
    context.usage(tokens(1_500));
    context.usage({
      contextTokens: Math.round(between(0.4, 0.6) * CONTEXT_WINDOW),
      contextWindow: CONTEXT_WINDOW,
    });
    return ANSWERS.get(task.message ?? "") ?? `Thank you for asking: ${task.message}`;
  });

  rota.agent("reporter", async (_task, { signal }) => {
    await sleep(between(300, 600), signal);
    return "the report is sent";
  });
}

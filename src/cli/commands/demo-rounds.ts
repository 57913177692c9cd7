import type { Rota } from "../../interface/rota.ts";
import type { NewScheduleInput } from "../../interface/schedules.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import { type DemoWorld, LOG_IN, TALK } from "./demo-agents.ts";
import { TRANSLATOR } from "./demo-worker.ts";

/** Few slots, so that tasks wait. The receiver of the callbacks is on this machine. */
export const DEMO_OPTIONS = {
  storage: "sqlite::memory:",
  scheduler: { workerCount: 4 },
  webhooks: { allow: ["127.0.0.1"] },
} as const;

/** How long one round takes, its backlog included. */
export const ROUND_MS = 25_000;
export const DEMO_SESSION = "chat:customer-42";

const SCHEDULES: readonly NewScheduleInput[] = [
  { name: "Report", schedule: "every 10 seconds", message: "Send the report", agent: "reporter" },
  {
    name: "Price watch",
    schedule: "every hour",
    instruction: "Check the prices of 40 shops",
    agent: "crawler",
  },
  {
    name: "Morning briefing",
    schedule: "every weekday at 06:00",
    message: "Sum up the news",
    agent: "reporter",
  },
  {
    name: "Tidy the archive",
    schedule: "every Sun at 03:00",
    instruction: "Sort the archive",
    agent: "archivist",
  },
];

const SITES = ["shop.example", "news.example", "docs.example", "jobs.example"];

/** Tasks that wait for each other. */
const BATCH = [
  { key: "prices", agentId: "small", instruction: "Collect the prices" },
  { key: "stock", agentId: "small", instruction: "Collect the stock" },
  { key: "figures", agentId: "small", instruction: "Join the figures", dependsOn: ["prices", "stock"] },
  { key: "chart", agentId: "small", instruction: "Draw the charts", dependsOn: ["figures"] },
  { key: "text", agentId: "small", instruction: "Write the text", dependsOn: ["figures"] },
  { key: "send", agentId: "reporter", instruction: "Send it all", dependsOn: ["chart", "text"] },
] as const;

/** A part of a round. */
interface DemoStep {
  /** How long after the start of the round it is submitted. */
  readonly atMs: number;
  /** What the viewer sees happen. */
  readonly says: string;
  readonly tasks?: readonly SubmitInput[];
  readonly batch?: readonly (SubmitInput & {
    readonly key: string;
    readonly dependsOn?: readonly string[];
  })[];
  /** A message to the session of the demo. */
  readonly message?: string;
}

/** One round: a backlog, and what the scheduler makes of it. */
function stepsOf(round: number, { random, callbackUrl, hasWorker }: PlayOptions): readonly DemoStep[] {
  const reports = Math.round(10 + 4 * Math.cos(round / 5) + 3 * random());
  const [question = ""] = TALK[(2 * round) % TALK.length] ?? [];
  const [another = ""] = TALK[(2 * round + 1) % TALK.length] ?? [];
  return [
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
      says: `greedy submits ${reports} tasks at once. All four slots are busy, so most of them wait.`,
      tasks: Array.from({ length: reports }, (_, index) => ({
        agentId: "greedy",
        instruction: `Read report ${index + 1} of ${reports}`,
        priority: index === reports - 1 ? "high" : "normal",
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
        {
          agentId: "flaky",
          instruction: "Check the price",
          retryPolicy: { maxRetries: 2, backoffMs: 1_000 },
        },
        ...(round % 3 === 0
          ? [{ agentId: "flaky", instruction: LOG_IN, retryPolicy: { maxRetries: 0 } }]
          : []),
      ],
    },
    {
      atMs: 6_500,
      says: "small submits one task. It does not wait for the backlog of greedy: agents share the slots.",
      tasks: [{ agentId: "small", instruction: "Translate one sentence", callbackUrl }],
    },
    ...(hasWorker
      ? [
          {
            atMs: 7_500,
            says: "translator is no agent of the server: a worker asks for its tasks over HTTP, two at a time.",
            tasks: ["French", "Spanish", "Polish"].map((language) => ({
              agentId: TRANSLATOR,
              instruction: `Translate the manual into ${language}`,
            })),
          },
        ]
      : []),
    {
      atMs: 8_500,
      says: "A customer writes to support. Messages of a session run in order, here in the lane main.",
      message: question,
    },
    {
      atMs: 10_500,
      says: "small submits a batch of six tasks that depend on each other. Each waits for those before it.",
      batch: BATCH,
    },
    {
      atMs: 13_000,
      says: "The customer writes again. Meanwhile a schedule starts reporter every 10 seconds.",
      message: another,
    },
    {
      atMs: 15_000,
      says: "small submits a task with a callback URL: Rota posts its end there.",
      tasks: [{ agentId: "small", instruction: "Add two numbers", callbackUrl }],
    },
  ];
}

interface PlayOptions extends DemoWorld {
  /** Where the end of some tasks is posted. */
  readonly callbackUrl: string;
  /** Whether there is a worker, which some tasks are for. */
  readonly hasWorker: boolean;
  readonly signal: AbortSignal;
  /** Called with what the viewer sees happen. */
  readonly say?: (text: string) => void;
}

/** Creates the schedules, and submits the steps of a round again and again until the signal fires. */
export async function playRounds(rota: Rota, options: PlayOptions): Promise<void> {
  const { sleep, signal, say } = options;
  const wait = (ms: number) => sleep(ms, signal).catch(() => {});
  for (const schedule of SCHEDULES) await rota.schedules.create(schedule);
  for (let round = 0; !signal.aborted; round++) {
    let atMs = 0;
    for (const step of stepsOf(round, options)) {
      await wait(step.atMs - atMs);
      if (signal.aborted) return;
      atMs = step.atMs;
      say?.(step.says);
      await submit(rota, step);
    }
    await wait(ROUND_MS - atMs);
  }
}

async function submit(rota: Rota, { tasks, batch, message }: DemoStep): Promise<void> {
  if (tasks !== undefined) await rota.tasks.submitMany(tasks);
  if (batch !== undefined) await rota.tasks.submitBatch({ tasks: batch });
  if (message !== undefined) await rota.sessions.send(DEMO_SESSION, { message, agentId: "support" });
}

/** The victim, in a process of its own: an ordinary tenant with an agent, a receiver, a schedule and a page that it lists. */
import { setTimeout as delay } from "node:timers/promises";
import { HttpCaller } from "./http-caller.ts";
import { receive, say } from "./program-side.ts";
import { openVictimServer } from "./victim-server.ts";
import { preciseNow, type RunOfSchedule, VictimWatch } from "./victim-watch.ts";

export interface VictimOrders {
  readonly url: string;
  readonly key: string;
  readonly windowSec: number;
}

/** Far below what a key may do, so that a refusal is never the victim's own fault. */
const SUBMITS_PER_SECOND = 25;
const LISTS_PER_SECOND = 10;
/** Requests of each kind that wait at the same time: a stalled node is not buried under what piles up meanwhile. */
const WAITING_MAX = 20;
/** One task in so many has a callback. */
const CALLBACK_EVERY = 5;
/** Code that runs for the first times is slow. */
const WARM_UP_MS = 2_000;
/** What began in the window may end until then. */
const DRAIN_MS_MAX = 5_000;
/** At even seconds of the clock, so that the lateness of a run can be computed. */
const EVERY_2_SECONDS = "*/2 * * * * *";

const orders = JSON.parse(process.argv[2] ?? "") as VictimOrders;
const node = new HttpCaller({ ...orders, connections: 2 * WAITING_MAX });
const watch = new VictimWatch();
const { agentUrl, callbackUrl } = await openVictimServer(watch);
await node.mustPost("/v1/agents", { id: "worker", executor: { type: "http", url: agentUrl } });
const { scheduled_task } = await node.mustPost<{ scheduled_task: { id: number } }>("/v1/schedules", {
  schedule: EVERY_2_SECONDS,
  agent: "worker",
  payload: { scheduled: true },
});

await work(WARM_UP_MS);
say(null);
await receive();
watch.begin();
await work(orders.windowSec * 1_000);
const windowEndedAt = preciseNow();
await drain();
const runs = await readRuns();
say(watch.report({ runs, windowEndedAt, endedAt: preciseNow() }));

/** Submits and lists at a steady pace, whatever the responses take. */
async function work(ms: number): Promise<void> {
  const endsAt = performance.now() + ms;
  let submits = 0;
  await Promise.all([
    steadily(SUBMITS_PER_SECOND, endsAt, () => submit(submits++ % CALLBACK_EVERY === 0)),
    steadily(LISTS_PER_SECOND, endsAt, list),
  ]);
}

/** Begins one at each tick unless too many wait already, and does not wait for the last of them. */
async function steadily(perSecond: number, endsAt: number, begin: () => Promise<void>): Promise<void> {
  let waiting = 0;
  for (let at = performance.now(); at < endsAt; at += 1_000 / perSecond) {
    await delay(Math.max(0, at - performance.now()));
    if (waiting === WAITING_MAX) continue;
    waiting += 1;
    void begin().finally(() => {
      waiting -= 1;
    });
  }
}

async function submit(withCallback: boolean): Promise<void> {
  const submitted = watch.submits(withCallback);
  submitted.answered(
    await node.post("/tasks", {
      agentId: "worker",
      payload: { number: submitted.number },
      ...(withCallback ? { callbackUrl } : {}),
    }),
  );
}

async function list(): Promise<void> {
  const listed = watch.lists();
  listed(await node.get("/tasks?limit=50"));
}

async function drain(): Promise<void> {
  const giveUpAt = performance.now() + DRAIN_MS_MAX;
  while (!watch.isSettled() && performance.now() < giveUpAt) await delay(50);
}

/** A node that does not even show them has fired nothing as far as the victim knows. */
async function readRuns(): Promise<readonly RunOfSchedule[]> {
  const path = `/v1/schedules/${scheduled_task.id}/runs`;
  try {
    return (await node.mustGet<{ runs: readonly RunOfSchedule[] }>(path)).runs;
  } catch {
    return [];
  }
}

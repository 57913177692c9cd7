import { isTerminal, type TaskState } from "../../src/model/task-state.ts";
import type { SimulatedProcess } from "./process.ts";
import { limitsIn } from "./settings.ts";
import type { World } from "./world.ts";

/** When all goes well again, whoever waits for an answer that got lost gives up within this, and tries again. */
const RECOVERY_MS = 26_000;
/** As long as a process takes to start. */
const START_MS = 4_000;
/** How late what is due may be when all goes well: a timer hits its moment, a look now and then comes after 5 seconds. */
const LATE_MS = { timer: 1_000, look: 6_000 } as const;
/** After this the last task must have ended: leases, retries and time limits included. */
const PATIENCE_MS = 180_000;
/** Longer than anybody waits who looks now and then. */
const REST_MS = 11_000;
const LOOK_MS = 500;

/**
 * Lets all go well from now on, and answers a process that has just started. It does so only when the others had the time
 * to recover by themselves: a new one looks at everything, and would do what they have forgotten.
 */
export async function recover(world: World): Promise<SimulatedProcess> {
  world.clearUp();
  await world.pass(RECOVERY_MS);
  await lookForOverdue(world);
  const last = world.start();
  await world.pass(START_MS);
  for (const { name, rota } of world.processes)
    if (rota === null) world.complain(`${name} neither starts nor ends`);
  return last;
}

async function lookForOverdue(world: World): Promise<void> {
  const { storage, climate } = world;
  const now = world.clock.now();
  const look = async (what: string, ms: number, nextDueAt: Promise<number | null>) => {
    const lateMs = now - ((await nextDueAt) ?? now);
    if (lateMs > ms) world.complain(`${what} are due for ${lateMs} ms, and nobody cares`);
  };
  if (world.open.length === 0) return;
  await look("tasks", LATE_MS.look, storage.tasks.nextDueAt());
  // Who is never told of a schedule or a callback finds it by a look every half a minute.
  if (climate.signals.lost !== null) return;
  await look("schedules", LATE_MS.timer, storage.schedules.nextDueAt());
  await look("callbacks", LATE_MS.timer, storage.deliveries.nextDueAt());
}

/** What has not ended by then never will: the checks say so. */
export async function untilQuiet(world: World): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_MS) {
    const counts = await world.storage.tasks.counts({ tenant: "default" });
    if (Object.keys(counts).every((state) => isTerminal(state as TaskState))) return;
    await world.pass(LOOK_MS);
  }
}

/** As many tasks as there are slots all run at once: none was lost on the way. */
export async function fillEverySlot(world: World, process: SimulatedProcess): Promise<void> {
  const { agents, climate, ledger } = world;
  let expected = 0;
  for (const [lane, { perNode, total, perAgent = total }] of Object.entries(limitsIn(climate).lanes)) {
    const count = Math.min(perNode * world.processes.length, total, perAgent);
    expected += count;
    for (let index = 0; index < count; index += 1) {
      const marker = ledger.marker("hold");
      const task = { agentId: "holder", lane, payload: marker, metadata: { marker } };
      const { taskId } = await world.answer(process, (rota) => rota.tasks.submit(task));
      ledger.acknowledged.push({ what: "task", taskId, marker });
    }
  }
  const areFilled = await world.agenda.go(() => agents.held === expected, REST_MS);
  if (!areFilled) world.complain(`${expected} slots should be free, and ${agents.held} are`);
  agents.letGo();
}

/** Long enough for everybody who follows to be told of the last of it. */
export function rest(world: World): Promise<void> {
  return world.pass(REST_MS);
}

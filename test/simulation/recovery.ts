import { isTerminal, type TaskState } from "../../src/model/task-state.ts";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import { pendingDeliveries } from "./pending-deliveries.ts";
import type { SimulatedProcess } from "./process.ts";
import { limitsIn } from "./settings.ts";
import type { World } from "./world.ts";

/** After the faults, a caller whose response was lost gives up within this time, and tries again. */
const RECOVERY_MS = 26_000;
/** When the task of the killed process is due, how soon that process is killed, and when another must have noticed. */
const LATER_MS = 2_000;
const BEQUEATH_MS = 1_000;
const HEIRS_MS = 9_000;
/** As long as a process takes to start. */
const START_MS = 4_000;
/** After this the last task must have ended: leases, retries and time limits included. */
const PATIENCE_MS = 180_000;
/** Longer than any polling interval. */
const REST_MS = 11_000;
const LOOK_MS = 500;

/**
 * Lets all go well from now on, and answers a process that has just started, one of two. It does so only when the others had the
 * time to recover by themselves: a new one looks at everything, and would do what they have forgotten.
 */
export async function recover(world: World): Promise<SimulatedProcess> {
  world.clearUp();
  await world.pass(RECOVERY_MS);
  await bequeath(world);
  // One after the other, so that every agent has a process.
  world.start();
  const last = world.start();
  await world.pass(START_MS);
  for (const { name, rota } of world.processes)
    if (rota === null) world.complain(`${name} neither starts nor ends`);
  return last;
}

/** One takes a task for later and is killed: the others may never have got a signal of it, and run it all the same. */
async function bequeath(world: World): Promise<void> {
  const { open, chance, clock, ledger } = world;
  if (open.length < 2) return;
  const process = chance.pick(open);
  const marker = ledger.marker("later");
  const runAt = new Date(clock.now() + LATER_MS).toISOString();
  const task = { agentId: "worker", payload: marker, runAt, metadata: { marker } };
  process
    .ask("a task for later", (rota) => rota.tasks.submit(task))
    .then(
      ({ taskId }) => ledger.acknowledged.push({ what: "task", taskId, marker }),
      () => {},
    );
  await world.pass(BEQUEATH_MS);
  process.crash();
  await world.pass(HEIRS_MS);
}

/** What has not ended by then never will: the checks say so. */
export async function untilQuiet(world: World): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_MS) {
    const tenants = [DEFAULT_TENANT, ...world.guests.map(({ id }) => id)];
    const counts = await Promise.all(tenants.map((tenant) => world.storage.tasks.counts({ tenant })));
    if (counts.flatMap(Object.keys).every((state) => isTerminal(state as TaskState))) return;
    await world.pass(LOOK_MS);
  }
}

/** Until every callback was made, or given up. */
export async function untilDelivered(world: World): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += REST_MS) {
    if ((await pendingDeliveries(world)).length === 0) return;
    await world.pass(REST_MS);
  }
}

/** Until every event is in the statistics over time. Where signals get lost the nodes look once a minute. */
export async function untilCounted(world: World): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += REST_MS) {
    if ((await world.storage.rollups.lateMs()) === 0) return;
    await world.pass(REST_MS);
  }
}

/** As many tasks as there are slots all run at once, of a tenant that is alone: none was lost on the way. */
export async function fillEverySlot(world: World, process: SimulatedProcess): Promise<void> {
  const { agents, climate, guests, ledger } = world;
  for (const { id } of guests) await world.answer(process, (rota) => rota.tenants.disable(id));
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
  for (const { id } of guests) await world.answer(process, (rota) => rota.tenants.enable(id));
}

/** Long enough for every reader to get the last event. */
export function rest(world: World): Promise<void> {
  return world.pass(REST_MS);
}

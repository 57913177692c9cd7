import { createHash } from "node:crypto";
import type { Run } from "../../src/interface/schedules.ts";
import type { Rota } from "../../src/interface/rota.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import type { Task } from "../../src/model/task.ts";
import { isTerminal, type TaskState } from "../../src/model/task-state.ts";
import { check, type Finding } from "../chaos/checks/index.ts";
import type { History } from "../chaos/history.ts";
import type { Climate } from "./climate.ts";
import { startClients } from "./clients.ts";
import { Follower } from "./follower.ts";
import { startMishaps } from "./mishaps.ts";
import type { SimulatedProcess } from "./process.ts";
import { enterSandbox } from "./sandbox.ts";
import { limitsIn, SESSIONS } from "./settings.ts";
import { World } from "./world.ts";

/** How long clients work and things go wrong. */
const LASTS_MS = 45_000;
/** When everything is well again, whoever waits for an answer that got lost gives up within this. */
const RECOVERY_MS = 30_000;
/** After this the last task must have ended: leases, retries and time limits included. */
const PATIENCE_MS = 180_000;
/** Longer than anybody waits who looks now and then. */
const REST_MS = 12_000;
const LOOK_MS = 500;

export interface SimulationOptions {
  readonly seed: number;
  /** Told of everything that happens. */
  readonly say?: (line: string) => void;
}

export interface SimulationReport {
  readonly seed: number;
  readonly climate: Climate;
  readonly findings: readonly Finding[];
  /** The same for the same seed. */
  readonly trace: string;
  readonly steps: number;
  readonly history: History;
}

/** Lets processes share a storage in a world that goes wrong as the seed has it; then looks whether promises were kept. */
export async function runSimulation({ seed, say }: SimulationOptions): Promise<SimulationReport> {
  const leave = enterSandbox();
  try {
    const world = new World(seed);
    const { agenda, climate } = world;
    agenda.onStep = say ?? null;
    const history = await live(world);
    const findings = [...check(history), ...complaints(world)];
    const seen = JSON.stringify({ ...history, tasks: [...history.tasks] }, withoutNodes);
    const trace = createHash("sha256").update(agenda.trace).update(seen).digest("hex");
    return { seed, climate, findings, trace, steps: agenda.steps, history };
  } finally {
    leave();
  }
}

async function live(world: World): Promise<History> {
  const { agenda, climate, ledger, agents, strikes } = world;
  for (let count = 0; count < climate.nodes; count += 1) world.start();
  await prepareSessions(world);
  const followers = [new Follower(world), new Follower(world)];
  const clients = startClients(world);
  startMishaps(world);
  await agenda.go(() => false, LASTS_MS);

  for (const client of clients) client.stop();
  world.clearUp();
  const last = world.start();
  await agenda.go(() => false, RECOVERY_MS);
  for (const { name, rota } of world.processes)
    if (rota === null) world.complain(`${name} neither starts nor ends`);
  const doctor = await answer(world, last, async (rota) => {
    const report = await rota.doctor();
    for (const { id } of (await rota.schedules.list()).schedules)
      await rota.schedules.update(id, { enabled: false });
    return report;
  });
  await untilQuiet(world);
  await fillEverySlot(world, last);
  await agenda.go(() => false, REST_MS);
  const seen = await answer(world, last, readEverything);
  return {
    limits: limitsIn(climate),
    acknowledged: ledger.acknowledged,
    retriesAsked: ledger.retriesAsked,
    calls: agents.calls,
    strikes,
    followed: followers.map(({ seqs }) => seqs),
    doctor,
    ...seen,
  };
}

async function prepareSessions(world: World): Promise<void> {
  for (const [key, changes] of Object.entries(SESSIONS)) {
    for (let isSet = false; !isSet; ) {
      await world.agenda.go(() => world.open.length > 0, PATIENCE_MS);
      const process = world.open[0] as SimulatedProcess;
      isSet = await answer(world, process, (rota) => rota.sessions.update(key, changes)).then(
        () => true,
        () => false,
      );
    }
  }
}

/** What has not ended by then never will: the checks say so. */
async function untilQuiet({ agenda, storage }: World): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_MS) {
    const counts = await storage.tasks.counts({ tenant: "default" });
    if (Object.keys(counts).every((state) => isTerminal(state as TaskState))) return;
    await agenda.go(() => false, LOOK_MS);
  }
}

/** As many tasks as there are slots all run at once: none was lost on the way. */
async function fillEverySlot(world: World, process: SimulatedProcess): Promise<void> {
  const { agenda, agents, climate, ledger } = world;
  const { lanes } = limitsIn(climate);
  let expected = 0;
  for (const [lane, { perNode, total, perAgent = total }] of Object.entries(lanes)) {
    const count = Math.min(perNode * world.processes.length, total, perAgent);
    for (let index = 0; index < count; index += 1) {
      const marker = ledger.marker("hold");
      const { taskId } = await answer(world, process, (rota) =>
        rota.tasks.submit({ agentId: "holder", lane, payload: marker, metadata: { marker } }),
      );
      ledger.acknowledged.push({ what: "task", taskId, marker });
    }
    expected += count;
  }
  const filled = await agenda.go(() => agents.held === expected, REST_MS);
  if (!filled) world.complain(`${expected} slots should be free, and ${agents.held} are`);
  agents.letGo();
  await untilQuiet(world);
}

/** What a process said that it never should, whatever happens around it. */
function complaints({ all, complained }: World): Finding[] {
  const promise = "nothing fails but what was made to";
  const said = all.flatMap(({ name, log }) =>
    log.lines
      .filter(({ level, message }) => level === "error" && !EXPECTED.has(message))
      .map(({ message, fields }) => `${name}: ${message} ${String(fields["error"] ?? "")}`),
  );
  return [...complained, ...said].map((each) => ({ promise, said: each }));
}

const EXPECTED = new Set([
  "lost its lease and aborted what it ran",
  "could not write down what ended; another start will run it again",
  "could not store the limits of agents",
]);

/** Asks a process, and lets the world go on until it has answered. */
async function answer<Answer>(
  { agenda }: World,
  process: SimulatedProcess,
  request: (rota: Rota) => Promise<Answer>,
): Promise<Answer> {
  let isOver = false;
  const answered = process.ask("a question", request).finally(() => {
    isOver = true;
  });
  answered.catch(() => {});
  if (!(await agenda.go(() => isOver, PATIENCE_MS))) throw new Error(`${process.name} does not answer.`);
  return answered;
}

async function readEverything(
  rota: Rota,
): Promise<Pick<History, "events" | "tasks" | "runs" | "schedules">> {
  const schedules = (await rota.schedules.list()).schedules.map(({ id }) => id);
  const { taskId } = await rota.tasks.submit({ payload: "the last of this log" });
  await rota.tasks.wait(taskId);
  const events: RotaEvent[] = [];
  for await (const event of rota.events({ after: 0 })) {
    events.push(event);
    if (event.taskId === taskId && event.type === "task.completed") break;
  }
  return { events, tasks: await readTasks(rota), schedules, runs: await readRuns(rota) };
}

async function readTasks(rota: Rota): Promise<Map<string, Task>> {
  const tasks = new Map<string, Task>();
  for (let cursor: { cursor?: string } = {}; ; ) {
    const page = await rota.tasks.list({ limit: 1_000, ...cursor });
    for (const task of page.tasks) tasks.set(task.taskId, task);
    if (page.nextCursor === null) return tasks;
    cursor = { cursor: page.nextCursor };
  }
}

async function readRuns(rota: Rota): Promise<Run[]> {
  const runs: Run[] = [];
  for (let cursor: { cursor?: string } = {}; ; ) {
    const page = await rota.runs.list(cursor);
    runs.push(...page.runs);
    if (page.next_cursor === null) return runs;
    cursor = { cursor: page.next_cursor };
  }
}

/** Nodes are named after the machine and the real process. */
function withoutNodes(key: string, value: unknown): unknown {
  return key === "node" ? undefined : value;
}

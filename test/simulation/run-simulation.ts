import { createHash } from "node:crypto";
import type { DoctorReport } from "../../src/interface/doctor.ts";
import type { Rota } from "../../src/interface/rota.ts";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { Finding } from "../chaos/checks/index.ts";
import type { History } from "../chaos/history.ts";
import { readCounted } from "../chaos/read-counted.ts";
import { checkAll } from "./checks.ts";
import { startClients } from "./clients/index.ts";
import type { Climate } from "./climate.ts";
import { Follower } from "./follower.ts";
import { startMishaps } from "./mishaps.ts";
import { watchPunctuality } from "./punctuality.ts";
import { readDeliveries, readHistory, readRunRecords } from "./read-history.ts";
import { loadOutbound } from "./receiver.ts";
import { fillEverySlot, recover, rest, untilCounted, untilDelivered, untilQuiet } from "./recovery.ts";
import { enterSandbox } from "./sandbox.ts";
import { limitsIn, SESSIONS } from "./settings.ts";
import { countGuests, prepareGuests, readGuests } from "./tenants.ts";
import { type SimulatedStorage, World } from "./world.ts";

/** How long clients work and things go wrong. */
const LASTS_MS = 32_000;

export interface SimulationOptions {
  readonly seed: number;
  /** What processes share; left out: the model of a storage. */
  readonly storage?: SimulatedStorage;
  /** For who wants to see promises broken: makes of a storage that keeps them one that does not. */
  readonly spoil?: (storage: Storage) => Storage;
  /** Called with everything that happens. */
  readonly say?: (line: string) => void;
}

export interface SimulationReport {
  readonly seed: number;
  readonly storage: SimulatedStorage;
  readonly climate: Climate;
  readonly findings: readonly Finding[];
  /** Stands for everything that happened, and is the same for the same seed. */
  readonly trace: string;
  readonly steps: number;
  readonly history: History;
}

/**
 * Lets processes share a storage in a world that goes wrong as the seed has it, and looks afterwards whether they have kept
 * their promises. Nothing in it waits for real time, and nothing is left to real chance.
 */
export async function runSimulation(options: SimulationOptions): Promise<SimulationReport> {
  const { seed, storage = "oracle", spoil = (unspoiled) => unspoiled, say } = options;
  await loadOutbound();
  const world = await World.open({ seed, storage, spoil });
  const { agenda, receiver } = world;
  const leave = enterSandbox((actor) => receiver.dispatcherIn(actor));
  try {
    agenda.onStep = say ?? null;
    const history = await live(world);
    const findings = checkAll(history, world);
    return {
      seed,
      storage,
      climate: world.worst,
      findings,
      trace: traceOf(world, history),
      steps: agenda.steps,
      history,
    };
  } finally {
    leave();
    await world.storage.close();
  }
}

async function live(world: World): Promise<History> {
  const { climate, ledger, agents, strikes } = world;
  for (let count = 0; count < climate.nodes; count += 1) world.start();
  await prepareSessions(world);
  world.guests = await prepareGuests(world);
  world.darken();
  const followers = [new Follower(world), new Follower(world)];
  const clients = startClients(world);
  startMishaps(world);
  watchPunctuality(world);
  await world.pass(LASTS_MS);

  for (const client of clients) client.stop();
  const last = await recover(world);
  const doctor = aboutRota(world, await world.answer(last, (rota) => rota.doctor()));
  await world.answer(last, stopSchedules);
  for (const { id } of world.guests) await world.answer(last, (rota) => rota.tenants.enable(id));
  await untilQuiet(world);
  await fillEverySlot(world, last);
  await untilQuiet(world);
  await untilDelivered(world);
  world.deliveries = await world.answer(last, readDeliveries);
  const seen = await world.answer(last, readHistory);
  world.seenByGuests = await readGuests(world, last);
  world.runs = await readRunRecords(world.storage);
  await rest(world);
  await untilCounted(world);
  const bulks = await world.answer(last, (rota) =>
    Promise.all(ledger.bulkIds.map((id) => rota.bulks.get(id))),
  );
  const counted = await world.answer(last, (rota) => readCounted(rota, DEFAULT_TENANT, seen.events));
  world.countedOfGuests = await countGuests(world, last);
  return {
    limits: limitsIn(climate),
    acknowledged: ledger.acknowledged,
    retriesAsked: ledger.retriesAsked,
    resendsAsked: ledger.resendsAsked,
    edits: ledger.edits,
    calls: agents.calls,
    callbacks: [],
    deliveries: [],
    strikes,
    homes: world.homes,
    fickle: ledger.fickle,
    followed: followers.map(({ seqs }) => ({ tenantId: DEFAULT_TENANT, seqs })),
    views: [],
    knocks: [],
    bulks,
    counted: [counted],
    doctor,
    ...seen,
  };
}

async function prepareSessions(world: World): Promise<void> {
  const process = await world.anyOpen();
  for (const [key, changes] of Object.entries(SESSIONS))
    await world.answer(process, (rota) => rota.sessions.update(key, changes));
}

/**
 * What the doctor says that was not done to Rota from outside: it finds out which clocks were set, and is right. A schedule
 * that is changed just then goes by the time that the node still believed in, and some moments are missing or are too many.
 */
function aboutRota({ worst, ledger }: World, { checks, ...report }: DoctorReport): DoctorReport {
  const unsteady = worst.mishaps.includes("reset") ? ledger.fickle.map((id) => `Schedule #${id} `) : [];
  const isAbout = (finding: string) => !unsteady.some((name) => finding.startsWith(name));
  const kept = checks.filter(({ name }) => name !== "clock");
  return {
    ...report,
    checks: kept.map((check) => {
      const findings = check.findings.filter(isAbout);
      return { ...check, findings, ok: findings.length === 0 };
    }),
  };
}

async function stopSchedules(rota: Rota): Promise<void> {
  const { schedules } = await rota.schedules.list();
  for (const { id } of schedules) await rota.schedules.update(id, { enabled: false });
}

function traceOf({ agenda }: World, history: History): string {
  const seen = { ...history, tasks: [...history.tasks] };
  // Nodes are named after the machine and the real process.
  const text = JSON.stringify(seen, (key, value) => (key === "node" ? undefined : value));
  return createHash("sha256").update(agenda.trace).update(text).digest("hex");
}

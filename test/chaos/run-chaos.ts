import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../src/client/index.ts";
import type { DoctorReport } from "../../src/interface/doctor.ts";
import { Chance } from "./chance.ts";
import { check, type Finding } from "./checks/index.ts";
import { Batcher } from "./clients/batcher.ts";
import type { Client, Surroundings } from "./clients/client.ts";
import { Editor } from "./clients/editor.ts";
import { Meddler } from "./clients/meddler.ts";
import { Planner } from "./clients/planner.ts";
import { Ponderer } from "./clients/ponderer.ts";
import { Resender } from "./clients/resender.ts";
import { Submitter } from "./clients/submitter.ts";
import { Talker } from "./clients/talker.ts";
import { type Follower, follow } from "./follower.ts";
import type { History, Strike } from "./history.ts";
import { inflict } from "./inflict.ts";
import { Ledger } from "./ledger.ts";
import { makePlan, type Step, type StorageName } from "./plan.ts";
import { readHistory } from "./read-history.ts";
import { LIMITS, SESSIONS } from "./settings.ts";
import { openWorld, type World } from "./world.ts";

/** When everything is well again, the last task must have ended after this: leases, retries and time limits included. */
const PATIENCE_MS = 120_000;
const LOOK_MS = 100;
/** The longest that the longest work takes: of about the time for which a node is still believed after its lease. */
const PONDER_MS = { brief: 1_500, long: 8_000 } as const;
/** How many tries of a callback may go wrong: a third and a fourth come too late for a brief run. */
const CALLBACK_FAILURES = { brief: 2, long: 4 } as const;
const UNFINISHED = ["waiting_dependency", "delayed", "queued", "assigned", "running"] as const;

export interface ChaosOptions {
  readonly seed: number;
  readonly storage: StorageName;
  readonly nodes: number;
  /** How long clients work and faults come; what follows takes as long as it takes. */
  readonly lastsMs: number;
  readonly brief: boolean;
  /** Told what happens. */
  readonly say?: (line: string) => void;
}

export interface ChaosReport {
  readonly plan: readonly Step[];
  readonly findings: readonly Finding[];
  readonly history: History;
  readonly ledger: Ledger;
  /** Where the nodes' logs are kept; null when there is nothing to look for in them. */
  readonly logs: string | null;
}

/** Lets clients use a Rota to which the worst happens; then looks whether it has kept its promises. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, storage, nodes, lastsMs, brief, say = () => {} } = options;
  const chance = new Chance(seed);
  const plan = makePlan({ chance: chance.fork("plan"), storage, nodes, lastsMs, brief });
  const world = await openWorld({
    storage,
    nodes,
    chance,
    callbackFailures: CALLBACK_FAILURES[brief ? "brief" : "long"],
  });
  let failed = true;
  try {
    const { history, ledger } = await live({ world, plan, chance, lastsMs, brief, say });
    const findings = check(history);
    failed = findings.length > 0;
    return { plan, findings, history, ledger, logs: failed ? world.folder : null };
  } finally {
    await world.close({ logs: failed });
  }
}

interface LifeParams {
  readonly world: World;
  readonly plan: readonly Step[];
  readonly chance: Chance;
  readonly lastsMs: number;
  readonly brief: boolean;
  readonly say: (line: string) => void;
}

async function live(params: LifeParams): Promise<{ history: History; ledger: Ledger }> {
  const { world, plan, chance, lastsMs, brief, say } = params;
  const { receivers } = world;
  const urls = world.nodes.map(({ url }) => url);
  const first = new RotaClient({ url: urls[0] ?? "" });
  for (const [key, changes] of Object.entries(SESSIONS)) await first.sessions.update(key, changes);
  const followers = urls.map(follow);

  const ledger = new Ledger();
  const strikes: Strike[] = [];
  const over = AbortSignal.timeout(lastsMs);
  const clients = makeClients(brief, { chance, ledger, receivers, urls, stop: over }).map((client) =>
    client.run(),
  );
  await inflict({ world, plan, chance: chance.fork("inflict"), strikes, say });
  await Promise.all(clients);

  const healedAt = performance.now();
  const phase = (what: string) => say(`   ${what} after ${Math.round(performance.now() - healedAt)} ms`);
  world.program.behave();
  receivers.behave();
  const doctor = await settle(first, ledger);
  phase("all has ended");
  // One that was on its way when its node was killed comes half a minute later: too late for a brief run.
  const callbacksOver = !brief;
  if (callbacksOver) await untilTold(first);
  phase("all has been told");
  const seen = await readHistory(urls[0] ?? "");
  phase("all has been read");
  await handOut(followers, seen.events.at(-1)?.seq ?? 0);
  phase("all has been handed out");
  const followed = followers.map(({ seqs }) => seqs);
  const { acknowledged, retriesAsked, resendsAsked, edits } = ledger;
  const { calls } = world.program;
  const { callbacks } = receivers;
  return {
    ledger,
    history: {
      limits: LIMITS,
      acknowledged,
      retriesAsked,
      resendsAsked,
      edits,
      calls,
      callbacks,
      callbacksOver,
      strikes,
      ...seen,
      followed,
      doctor,
    },
  };
}

function makeClients(brief: boolean, surroundings: Surroundings): Client[] {
  const { chance } = surroundings;
  return [
    new Submitter({ ...surroundings, chance: chance.fork("one") }),
    new Submitter({ ...surroundings, chance: chance.fork("another") }),
    new Batcher(surroundings),
    new Meddler(surroundings),
    new Resender(surroundings),
    new Planner(surroundings),
    new Editor(surroundings),
    new Ponderer(PONDER_MS[brief ? "brief" : "long"], surroundings),
    ...Object.keys(SESSIONS).map((key) => new Talker(key, surroundings)),
  ];
}

/** Examines it while schedules still fire, then lets everything come to its end. */
async function settle(rota: RotaClient, { edits }: Ledger): Promise<DoctorReport> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  // Moments that came while nobody was up are overdue until they have been caught up with.
  let doctor = await rota.doctor();
  while (!doctor.ok && performance.now() < giveUpAt) {
    await delay(LOOK_MS);
    doctor = await rota.doctor();
  }
  for (const { id } of (await rota.schedules.list()).schedules) {
    const { updated_at: at } = await rota.schedules.update(id, { enabled: false });
    edits.push({ deed: "paused", scheduleId: id, at });
  }
  // What has not ended by then never will: the checks say so.
  while (performance.now() < giveUpAt && (await rota.tasks.list({ state: UNFINISHED, limit: 1 })).count > 0)
    await delay(LOOK_MS);
  return doctor;
}

/** Lets every callback be made or given up. What is still pending by then always will be: the checks say so. */
async function untilTold(rota: RotaClient): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (
    performance.now() < giveUpAt &&
    (await rota.webhooks.deliveries({ status: "pending", limit: 1 })).count > 0
  )
    await delay(LOOK_MS);
}

async function handOut(followers: readonly Follower[], seq: number): Promise<void> {
  const late = delay(PATIENCE_MS, undefined, { ref: false });
  await Promise.race([Promise.all(followers.map((follower) => follower.until(seq))), late]);
}

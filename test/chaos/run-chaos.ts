import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../src/client/index.ts";
import { DEFAULT_MAX_LANE_SHARE } from "../../src/model/lane.ts";
import { Chance } from "./chance.ts";
import { check, type Finding } from "./checks/index.ts";
import { makeClients } from "./clients/make-clients.ts";
import { type Follower, follow } from "./follower.ts";
import type { History, Span, Strike } from "./history.ts";
import { inflict } from "./inflict.ts";
import type { Ledger } from "./ledger.ts";
import { makePlan, type Step, type StorageName } from "./plan.ts";
import { readHistory } from "./read-history.ts";
import { homesOf, LIMITS, REMOTE_AGENT, WORKERS } from "./settings.ts";
import { PATIENCE_MS, settle, untilCalledBack } from "./settle.ts";
import { makeTenants } from "./tenancy.ts";
import { openWorld, type World } from "./world.ts";

/** The longest that the longest work takes: of about the time for which a node is still believed after its lease. */
const PONDER_MS = { brief: 1_500, long: 8_000 } as const;
/** Of which each has users of its own, and there is little time in a brief run. */
const TENANTS_COUNT = { brief: 2, long: 3 } as const;
/** How many tries of a callback may go wrong: a third and a fourth would make a brief run half a minute longer. */
const CALLBACK_FAILURES = { brief: 2, long: 4 } as const;

export interface ChaosOptions {
  readonly seed: number;
  readonly storage: StorageName;
  readonly nodes: number;
  /** How long clients work and faults come; what follows takes as long as it takes. */
  readonly lastsMs: number;
  readonly brief: boolean;
  /** Called with what happens. */
  readonly say?: (line: string) => void;
}

export interface ChaosReport {
  readonly plan: readonly Step[];
  readonly findings: readonly Finding[];
  readonly history: History;
  readonly ledgers: readonly Ledger[];
  /** Where the nodes' logs are kept; null when there is nothing to look for in them. */
  readonly logs: string | null;
}

/** Lets clients use a Rota to which the worst happens; then looks whether it has kept its promises. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, storage, nodes, lastsMs, brief, say = () => {} } = options;
  const chance = new Chance(seed);
  const plan = makePlan({ chance: chance.fork("plan"), storage, nodes, workers: WORKERS, lastsMs, brief });
  const world = await openWorld({
    storage,
    nodes,
    chance,
    callbackFailures: CALLBACK_FAILURES[brief ? "brief" : "long"],
  });
  let failed = true;
  try {
    const { history, ledgers } = await live({ world, plan, chance, lastsMs, brief, say });
    const findings = check(history);
    failed = findings.length > 0;
    if (failed) await keepHistory(history, world.folder);
    return { plan, findings, history, ledgers, logs: failed ? world.folder : null };
  } finally {
    await world.close({ logs: failed });
  }
}

/** Beside the logs, for a look at what the checks found. */
async function keepHistory(history: History, folder: string): Promise<void> {
  const asArrays = (_: string, value: unknown) => (value instanceof Map ? [...value.values()] : value);
  await writeFile(join(folder, "history.json"), JSON.stringify(history, asArrays));
}

interface LifeParams {
  readonly world: World;
  readonly plan: readonly Step[];
  readonly chance: Chance;
  readonly lastsMs: number;
  readonly brief: boolean;
  readonly say: (line: string) => void;
}

async function live(params: LifeParams): Promise<{ history: History; ledgers: Ledger[] }> {
  const { world, plan, chance, lastsMs, brief, say } = params;
  const { program, receivers } = world;
  const urls = world.nodes.map(({ url }) => url);
  const [first = ""] = urls;
  const { tenancies, rootKey } = await makeTenants(first, TENANTS_COUNT[brief ? "brief" : "long"]);
  for (const { id, webhookSecret } of tenancies) receivers.trust(id, webhookSecret);
  const { key: workerKey } = await new RotaClient({ url: first, key: rootKey }).keys.create({
    role: "worker",
    name: "workers",
    agents: [REMOTE_AGENT],
  });
  for (const worker of world.workers) worker.start(workerKey);
  const followers = urls.flatMap((url) => tenancies.map((tenancy) => follow(url, tenancy)));

  const strikes: Strike[] = [];
  const crashes: Span[] = [];
  const { callbacks } = receivers;
  const { calls } = program;
  const finishes = () => world.workerProxies.flatMap((proxy) => proxy.finishes);
  const stop = stopAfter(lastsMs, () => {
    const { edits, knocks } = knownIn(tenancies.map(({ ledger }) => ledger));
    return [calls, callbacks, edits, knocks, finishes()].every((each) => each.length > 0);
  });
  const ponderMs = PONDER_MS[brief ? "brief" : "long"];
  const clients = makeClients({ tenancies, ponderMs, chance, receivers, urls, stop });
  const working = clients.map((client) => client.run());
  await inflict({ world, plan, chance: chance.fork("inflict"), strikes, crashes, say });
  await Promise.all(working);

  const healedAt = performance.now();
  const phase = (what: string) => say(`   ${what} after ${Math.round(performance.now() - healedAt)} ms`);
  program.behave();
  receivers.behave();
  const doctor = await settle(first, tenancies, rootKey);
  phase("all has ended");
  await untilCalledBack(first, tenancies);
  phase("all callbacks have arrived");
  const seen = await readHistory(first, tenancies);
  phase("all has been read");
  await untilFollowed(followers, seen.events);
  phase("all followers have read it");
  const ledgers = tenancies.map(({ ledger }) => ledger);
  return {
    ledgers,
    history: {
      ...knownIn(ledgers),
      ...seen,
      limits: {
        ...LIMITS,
        tenants: Object.fromEntries(tenancies.map(({ id, bounds }) => [id, bounds])),
        laneShare: { max: DEFAULT_MAX_LANE_SHARE, holdsAt: () => tenancies.length > 1 },
      },
      calls,
      finishes: finishes(),
      callbacks,
      strikes,
      crashes,
      homes: homesOf(world.nodes.length),
      followed: followers.map(({ tenantId, seqs }) => ({ tenantId, seqs })),
      doctor,
    },
  };
}

/** A run in which a client did nothing proves nothing: on a busy machine clients go on, for this long at most. */
const LONGER_MAX_MS = 60_000;

/** Fires after this time, once there is enough to check. */
function stopAfter(lastsMs: number, isEnough: () => boolean): AbortSignal {
  const controller = new AbortController();
  const end = performance.now() + lastsMs;
  const timer = setInterval(() => {
    const longerMs = performance.now() - end;
    if (longerMs < 0 || (longerMs < LONGER_MAX_MS && !isEnough())) return;
    clearInterval(timer);
    controller.abort();
  }, 50);
  return controller.signal;
}

type Known = Pick<History, "acknowledged" | "retriesAsked" | "resendsAsked" | "edits" | "knocks">;

function knownIn(ledgers: readonly Ledger[]): Known {
  return {
    acknowledged: ledgers.flatMap(({ acknowledged }) => acknowledged),
    retriesAsked: ledgers.flatMap(({ retriesAsked }) => retriesAsked),
    resendsAsked: ledgers.flatMap(({ resendsAsked }) => resendsAsked),
    edits: ledgers.flatMap(({ edits }) => edits),
    knocks: ledgers.flatMap(({ knocks }) => knocks),
  };
}

/** Waits until each has read the last event of its tenant. */
async function untilFollowed(followers: readonly Follower[], events: History["events"]): Promise<void> {
  const late = delay(PATIENCE_MS, undefined, { ref: false });
  const caughtUp = followers.map((follower) =>
    follower.until(events.findLast(({ tenantId }) => tenantId === follower.tenantId)?.seq ?? 0),
  );
  await Promise.race([Promise.all(caughtUp), late]);
}

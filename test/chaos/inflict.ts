import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import type { Chance } from "./chance.ts";
import type { Mutable, Span, Strike } from "./history.ts";
import { describeStep, type Fault, type FaultKind, type LockedTable, type Step } from "./plan.ts";
import type { World } from "./world.ts";

/**
 * How long a node may need, once a fault is over, to hang up on those it has called: one that was cut off waits 20 seconds for
 * an answer that never comes, and loses its lease after 15.
 */
const AFTERMATH_MS: Partial<Record<FaultKind, number>> = {
  kill: 10_000,
  pause: 10_000,
  cut: 45_000,
  // The lease of a node is not renewed meanwhile.
  lock: 10_000,
  "kill-worker": 10_000,
  "pause-worker": 10_000,
  "cut-worker": 45_000,
};
/**
 * Workers reach Rota through nodes, and nodes through the database: while one of them is struck, workers may lose their attempts
 * without being able to know it. Their next heartbeat may wait for an answer that never comes, and for their backoff.
 */
const WORKERS_BLIND_MS = 45_000;

/** How long PostgreSQL may keep commits in memory that no client waits for: three times its `wal_writer_delay`. */
const UNWRITTEN_MS = 600;
/** A node that stands still after its claim calls its agent when it wakes, unless its lease has run out. */
const FORGOTTEN_MS = 15_000;

export interface InflictParams {
  readonly world: World;
  readonly plan: readonly Step[];
  readonly chance: Chance;
  readonly strikes: Strike[];
  readonly crashes: Span[];
  readonly say: (line: string) => void;
}

/** Does to a world what the plan says; resolves when all of it is over and every node is up. */
export async function inflict({ plan, say, ...rest }: InflictParams): Promise<void> {
  const begunAt = performance.now();
  const underWay = new Map<number | string | Step, Promise<void>>();
  for (const step of plan) {
    await delay(Math.max(begunAt + step.atMs - performance.now(), 0));
    say(describeStep(step));
    // The next mishap of a node waits until the node is up again.
    const key =
      "node" in step.fault ? step.fault.node : "worker" in step.fault ? `worker-${step.fault.worker}` : step;
    const before = underWay.get(key) ?? Promise.resolve();
    const done = before.then(() => carryOut(step.fault, rest));
    underWay.set(key, done);
    // It is thrown where all are waited for.
    done.catch(() => {});
  }
  await Promise.all(underWay.values());
}

async function carryOut(
  fault: Fault,
  { world, chance, strikes, crashes }: Omit<InflictParams, "plan" | "say">,
): Promise<void> {
  const node = "node" in fault ? world.nodes[fault.node] : undefined;
  const forMs = "forMs" in fault ? fault.forMs : 0;
  const noteStrike = (process: string, lastsMs: number) => {
    const noted: Mutable<Strike> = { process, from: world.program.now, until: null };
    strikes.push(noted);
    setTimeout(() => {
      noted.until = world.program.now;
    }, lastsMs).unref();
  };
  const strike = ({ name }: { readonly name: string }) =>
    noteStrike(name, forMs + (AFTERMATH_MS[fault.kind] ?? 0));
  const worker = "worker" in fault ? world.workers[fault.worker] : undefined;
  const workerProxy = "worker" in fault ? world.workerProxies[fault.worker] : undefined;
  if (worker === undefined && fault.kind !== "upstream")
    for (const { name } of world.workers) noteStrike(name, forMs + WORKERS_BLIND_MS);
  switch (fault.kind) {
    case "kill":
      if (node === undefined) return;
      strike(node);
      await node.kill();
      await delay(fault.forMs);
      return node.start();
    case "pause":
      if (node === undefined) return;
      strike(node);
      node.signal("SIGSTOP");
      await delay(fault.forMs);
      node.signal("SIGCONT");
      return;
    case "cut": {
      if (node === undefined) return;
      strike(node);
      const proxy = world.proxies[fault.node];
      proxy?.freeze();
      await delay(fault.forMs);
      proxy?.thaw();
      return;
    }
    case "fill":
      node?.signal("SIGUSR2");
      await delay(fault.forMs);
      node?.signal("SIGUSR2");
      return;
    case "clock":
      node?.signal("SIGWINCH");
      await delay(fault.forMs / 2);
      node?.signal("SIGWINCH");
      await delay(fault.forMs / 2);
      // A server whose clock stays wrong is a finding of the doctor.
      node?.signal("SIGWINCH");
      return;
    case "terminate":
      return terminate(world, chance);
    case "cancel-statements":
      return cancelStatements(world, chance, fault.forMs);
    case "lock":
      for (const each of world.nodes) strike(each);
      return lock(world, fault);
    case "restart-database":
      return world.postgres?.restart();
    case "crash-database": {
      const crash: Mutable<Span> = { from: world.program.now, until: null };
      crashes.push(crash);
      await delay(UNWRITTEN_MS);
      await world.postgres?.crash();
      setTimeout(() => {
        crash.until = world.program.now;
      }, FORGOTTEN_MS).unref();
      return;
    }
    case "kill-worker":
      if (worker === undefined) return;
      strike(worker);
      await worker.kill();
      await delay(fault.forMs);
      worker.start();
      return;
    case "pause-worker":
      if (worker === undefined) return;
      strike(worker);
      worker.signal("SIGSTOP");
      await delay(fault.forMs);
      worker.signal("SIGCONT");
      return;
    case "cut-worker":
      if (worker === undefined) return;
      strike(worker);
      workerProxy?.freeze();
      await delay(fault.forMs);
      workerProxy?.thaw();
      return;
    case "lose-answers":
      if (worker === undefined) return;
      strike(worker);
      workerProxy?.loseAnswers(true);
      await delay(fault.forMs);
      workerProxy?.loseAnswers(false);
      return;
    case "upstream":
      world.program.outage(fault.how);
      await delay(fault.forMs);
      world.program.outage(null);
      return;
  }
}

/** Ends about half of the connections that nodes have, whatever they are doing. */
async function terminate(world: World, chance: Chance): Promise<void> {
  await asAnotherProgram(world, async (client) => {
    const { rows } = await client.query(
      "select pid from pg_stat_activity where application_name = 'rota' order by pid",
    );
    const pids = rows.map(({ pid }) => pid).filter(() => chance.oneIn(2));
    await client.query("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", [pids]);
  });
}

/** Cancels what nodes run in the database at some moments, as a statement timeout does. */
async function cancelStatements(world: World, chance: Chance, forMs: number): Promise<void> {
  const until = performance.now() + forMs;
  await asAnotherProgram(world, async (client) => {
    while (performance.now() < until) {
      await client.query(
        "select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'rota' and state = 'active'",
      );
      await delay(chance.between(0, 20));
    }
  });
}

/** Keeps a lock that changes need, as a transaction does that is left open. */
async function lock(
  world: World,
  { table, forMs }: { readonly table: LockedTable; readonly forMs: number },
): Promise<void> {
  await asAnotherProgram(world, async (client) => {
    await client.query(`begin; set local lock_timeout = '10s'; lock table rota.${table} in share mode`);
    await delay(forMs);
  });
}

/** Uses the database of the nodes. It may be restarted meanwhile: then there is nothing left to do. */
async function asAnotherProgram({ postgres }: World, work: (client: Client) => Promise<void>): Promise<void> {
  if (postgres === null) return;
  const client = new Client({ connectionString: postgres.url });
  client.on("error", () => {});
  try {
    await client.connect();
    await work(client);
  } catch {
    // It was ended by another fault.
  } finally {
    await client.end().catch(() => {});
  }
}

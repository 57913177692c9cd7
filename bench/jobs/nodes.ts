import { availableParallelism } from "node:os";
import { postgresStorage } from "../empty-storage.ts";
import { figure, shareOf } from "../figure.ts";
import type { Findings, Setting } from "../job.ts";
import { measureNodes, type NodesDrain } from "../nodes/drain-by-nodes.ts";
import { formatPart } from "../report.ts";

const NODES = [1, 2, 4, 8] as const;
/** Held so much of the time, the write lock is what every node waits for. */
const WRITE_LOCK_FULL = 0.85;
/** So much of all cores taken, it is the machine. */
const MACHINE_FULL = 0.85;

/** What one PostgreSQL carries, by how many nodes share it, what a task costs there, and what is in the way first. */
export async function nodesJob({ postgresUrl, sizes, turns }: Setting): Promise<Findings> {
  const newStorage = postgresStorage({ postgresUrl });
  const serverUrl = postgresUrl ?? "";
  const runs = new Map<number, NodesDrain[]>(NODES.map((nodes) => [nodes, []]));
  for (let turn = 1; turn <= turns; turn += 1) {
    for (const nodes of NODES) {
      const run = await measureNodes(newStorage, { measured: sizes.nodesDrain, nodes, serverUrl });
      runs.get(nodes)?.push(run);
      console.error(`  turn ${turn}: ${name(nodes)} ${Math.round(run.perSecond).toLocaleString("en")}`);
    }
  }
  const figures = NODES.flatMap((nodes) => {
    const own = runs.get(nodes) ?? [];
    const each = (of: (run: NodesDrain) => number) => own.map(of);
    const of = (what: string) => `${name(nodes)}: ${what}`;
    return [
      figure(
        of("drain, 50 at once each"),
        "tasks/s",
        each((run) => run.perSecond),
      ),
      figure(
        of("round trips, for each task"),
        "times",
        each((run) => run.roundTrips),
      ),
      figure(
        of("transactions, for each task"),
        "times",
        each((run) => run.transactions),
      ),
      figure(
        of("waiting for the write lock, for each task"),
        "ms",
        each((run) => run.writeLockWaitMs),
      ),
      figure(
        of("the write lock was held"),
        "share",
        each((run) => run.watched.writeLockHeld),
      ),
      figure(
        of("processors in the nodes, for each task"),
        "ms",
        each((run) => run.nodeCpuMs),
      ),
      figure(
        of("processors in PostgreSQL, for each task"),
        "ms",
        each((run) => run.serverCpuMs),
      ),
      figure(
        of("write-ahead log, for each task"),
        "KiB",
        each((run) => run.walBytes / 1_024),
      ),
      figure(
        of("on disk, for each task that has ended"),
        "KiB",
        each((run) => run.diskBytes / 1_024),
      ),
    ];
  });
  const drained = (nodes: number) => (runs.get(nodes) ?? []).map((run) => run.perSecond);
  const ratios = NODES.flatMap((nodes) =>
    nodes === 1
      ? []
      : shareOf(`${name(nodes)}: drain, of one node's`, {
          of: drained(nodes),
          against: drained(1),
          goal: { atLeast: nodes === 4 ? 1.3 : 1 },
        }),
  );
  const obstacles = NODES.map((nodes) => `- ${name(nodes)}: ${obstacle(runs.get(nodes)?.at(-1))}`);
  const all = [...figures, ...ratios];
  const table = formatPart({ part: "nodes", figures: all, text: null });
  return { figures: all, text: `${table}\n\nWhat is in the way:\n\n${obstacles.join("\n")}` };
}

function name(nodes: number): string {
  return nodes === 1 ? "1 node" : `${nodes} nodes`;
}

/** By the last run, in words. */
function obstacle(run: NodesDrain | undefined): string {
  if (run === undefined) return "was not run";
  const { watched, perSecond, nodeCpuMs, serverCpuMs } = run;
  const cores = availableParallelism();
  const taken = ((nodeCpuMs + serverCpuMs) * perSecond) / 1_000;
  const share = taken / cores;
  const waits = watched.otherWaits
    .slice(0, 3)
    .map(({ what, connections }) => `${what} ${connections.toFixed(2)}`)
    .join(", ");
  const seen = [
    `the write lock was held ${percent(watched.writeLockHeld)} of the time, ${watched.writeLockWaiting.toFixed(2)} connections waited for it`,
    `${taken.toFixed(2)} of ${cores} cores were taken`,
    ...(waits === "" ? [] : [`other waits: ${waits}`]),
  ].join("; ");
  if (share >= MACHINE_FULL) return `the machine (${seen})`;
  if (watched.writeLockHeld >= WRITE_LOCK_FULL) return `the write lock (${seen})`;
  return `neither the write lock nor the machine: round trips and the nodes' own turns (${seen})`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

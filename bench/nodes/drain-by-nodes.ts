import { type NewStorage, withStorage } from "../empty-storage.ts";
import { ServerCpu } from "../peers/server-cpu.ts";
import { connect } from "../postgres/database.ts";
import { loadBacklog, openRota, perSecond } from "../workload.ts";
import { NodeProcess } from "./node-process.ts";
import { type Watched, watchServer } from "./watch-server.ts";

/** How many tasks are drained for each node before anything is measured: connections, plans and code are cold. */
const WARM_UP = 6_000;

export interface NodesDrain {
  readonly perSecond: number;
  readonly elapsedMs: number;
  /** For each task: */
  readonly roundTrips: number;
  readonly transactions: number;
  /** Milliseconds that connections waited for the write lock, all together. */
  readonly writeLockWaitMs: number;
  readonly nodeCpuMs: number;
  readonly serverCpuMs: number;
  readonly walBytes: number;
  /** What a task that has ended leaves in tables and indexes, its events included, until it is pruned. */
  readonly diskBytes: number;
  /** Over the whole. */
  readonly watched: Watched;
}

/**
 * Drains a backlog by so many nodes, each a process of its own, and looks at the server meanwhile. `measured`: how many tasks, besides
 * those that warm it up.
 */
export function measureNodes(
  newStorage: NewStorage,
  { measured: counted, nodes, serverUrl }: { measured: number; nodes: number; serverUrl: string },
): Promise<NodesDrain> {
  const tasks = counted + nodes * WARM_UP;
  return withStorage(newStorage, async (target) => {
    const loader = await openRota(target.url, { nodes });
    await loadBacklog(loader, { count: tasks });
    await target.settle();
    const processes = await Promise.all(
      Array.from({ length: nodes }, () => NodeProcess.open(target.url, { nodes })),
    );
    try {
      for (const node of processes) node.start();
      await untilStarted(processes, nodes * WARM_UP);
      const cpu = await ServerCpu.of(serverUrl);
      const watch = await watchServer(target.url, serverUrl);
      const cpuBefore = await cpu.read();
      for (const node of processes) node.measure();
      const startedBefore = started(processes);
      const begun = performance.now();
      await untilStarted(processes, tasks);
      const drained = await Promise.all(processes.map((node) => node.drain()));
      const elapsedMs = performance.now() - begun;
      const serverCpuMs = await cpu.readMs(cpuBefore);
      const watched = await watch.stop();
      const { counts } = await loader.tasks.counts();
      if (counts.done !== tasks) throw new Error(`${counts.done} of ${tasks} tasks are done`);
      const measured = tasks - startedBefore;
      const sum = (of: (each: (typeof drained)[number]) => number) =>
        drained.reduce((total, each) => total + of(each), 0) / measured;
      return {
        perSecond: perSecond(measured, elapsedMs),
        elapsedMs,
        roundTrips: sum(({ roundTrips }) => roundTrips),
        transactions: watched.transactions / measured,
        writeLockWaitMs: (watched.writeLockWaiting * elapsedMs) / measured,
        nodeCpuMs: sum(({ cpuMs }) => cpuMs),
        serverCpuMs: serverCpuMs / measured,
        walBytes: watched.walBytes / measured,
        diskBytes: (await diskBytes(target.url)) / tasks,
        watched,
      };
    } finally {
      await Promise.all(processes.map((node) => node.leave()));
      await loader.stop();
    }
  });
}

async function diskBytes(url: string): Promise<number> {
  const client = await connect(url);
  const { rows } = await client.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(oid)) as bytes
       from pg_class where relnamespace = 'rota'::regnamespace and relname in ('task', 'attempt', 'event')`,
  );
  await client.end();
  return Number(rows[0]?.bytes);
}

function started(processes: readonly NodeProcess[]): number {
  return processes.reduce((sum, each) => sum + each.started, 0);
}

function untilStarted(processes: readonly NodeProcess[], tasks: number): Promise<void> {
  return new Promise((resolve) => {
    for (const node of processes) {
      node.onStarted = () => {
        if (started(processes) >= tasks) resolve();
      };
    }
  });
}

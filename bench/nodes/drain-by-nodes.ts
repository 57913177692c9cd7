import { ServerCpu } from "../peers/server-cpu.ts";
import { inPlace, type NewPlace } from "../place.ts";
import { connect } from "../postgres/database.ts";
import { loadBacklog, openRota, perSecond } from "../workload.ts";
import { NodeProcess } from "./node-process.ts";
import { type Watched, watchServer } from "./watch-server.ts";

export interface NodesDrain {
  readonly perSecond: number;
  readonly elapsedMs: number;
  /** For each task: */
  readonly roundTrips: number;
  readonly transactions: number;
  /** Milliseconds that connections waited for the write lock, all together. */
  readonly gateWaitMs: number;
  readonly nodeCpuMs: number;
  readonly serverCpuMs: number;
  readonly walBytes: number;
  /** What a task that has ended leaves in tables and indexes, its events included, until it is pruned. */
  readonly diskBytes: number;
  /** Over the whole. */
  readonly watched: Watched;
}

/** Drains a backlog by so many nodes, each a process of its own, and looks at the server meanwhile. */
export function measureNodes(
  newPlace: NewPlace,
  { tasks, nodes, serverUrl }: { tasks: number; nodes: number; serverUrl: string },
): Promise<NodesDrain> {
  return inPlace(newPlace, async (place) => {
    const loader = await openRota(place.url, { nodes });
    await loadBacklog(loader, { count: tasks });
    await place.settle();
    const processes = await Promise.all(
      Array.from({ length: nodes }, () => NodeProcess.open(place.url, { nodes })),
    );
    try {
      const cpu = await ServerCpu.of(serverUrl);
      const watch = await watchServer(place.url, serverUrl);
      const cpuBefore = await cpu.read();
      const begun = performance.now();
      await allStarted(processes, tasks);
      const drained = await Promise.all(processes.map((node) => node.drain()));
      const elapsedMs = performance.now() - begun;
      const serverCpuMs = await cpu.readMs(cpuBefore);
      const watched = await watch.stop();
      const { counts } = await loader.tasks.counts();
      if (counts.done !== tasks) throw new Error(`${counts.done} of ${tasks} tasks are done`);
      const sum = (of: (each: (typeof drained)[number]) => number) =>
        drained.reduce((total, each) => total + of(each), 0) / tasks;
      return {
        perSecond: perSecond(tasks, elapsedMs),
        elapsedMs,
        roundTrips: sum(({ roundTrips }) => roundTrips),
        transactions: watched.transactions / tasks,
        gateWaitMs: (watched.gateWaiting * elapsedMs) / tasks,
        nodeCpuMs: sum(({ cpuMs }) => cpuMs),
        serverCpuMs: serverCpuMs / tasks,
        walBytes: watched.walBytes / tasks,
        diskBytes: (await diskBytes(place.url)) / tasks,
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

function allStarted(processes: readonly NodeProcess[], tasks: number): Promise<void> {
  return new Promise((resolve) => {
    for (const node of processes) {
      node.onStarted = () => {
        if (processes.reduce((sum, each) => sum + each.started, 0) >= tasks) resolve();
      };
      node.start();
    }
  });
}

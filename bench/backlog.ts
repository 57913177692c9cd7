import type { EmptyStorage } from "./empty-storage.ts";
import { loadBacklog, openRota, perSecond, StartCounter } from "./workload.ts";

/** Started before the clock runs: caches are cold and nothing is in flight. */
const WARM_UP = 1_000;

export interface Backlog {
  readonly tasks: number;
  readonly agents: number;
}

export interface Loaded {
  readonly seconds: number;
  /** Of this process, before and after. */
  readonly rssBeforeMib: number;
  readonly rssMib: number;
}

/** Fills a storage through `submitMany`. */
export async function fillStorage(target: EmptyStorage, { tasks, agents }: Backlog): Promise<Loaded> {
  const rota = await openRota(target.url, {});
  const rssBeforeMib = rssMib();
  const begun = performance.now();
  await loadBacklog(rota, { count: tasks, agents });
  const seconds = (performance.now() - begun) / 1_000;
  const loaded = { seconds, rssBeforeMib, rssMib: rssMib() };
  await rota.stop();
  await target.settle();
  return loaded;
}

/** Tasks a second over the next `tasks` of a backlog that holds more. */
export async function measureWindow(target: EmptyStorage, { tasks }: { tasks: number }): Promise<number> {
  const counter = new StartCounter();
  const rota = await openRota(target.url, { handler: counter.handler });
  const [first, last] = [counter.reached(WARM_UP), counter.reached(WARM_UP + tasks)];
  await rota.start();
  const elapsedMs = -(await first) + (await last);
  await rota.stop();
  return perSecond(tasks, elapsedMs);
}

/** What a window takes out of a backlog at most: what is started before the node is signalled that it is enough comes on top. */
export function windowTasks(tasks: number): number {
  return WARM_UP + tasks + 1_000;
}

function rssMib(): number {
  return process.memoryUsage().rss / 2 ** 20;
}

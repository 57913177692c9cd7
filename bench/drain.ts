import { inPlace, type NewPlace } from "./place.ts";
import { loadBacklog, openRota, perSecond, StartCounter } from "./workload.ts";

export interface DrainParams {
  readonly tasks: number;
  /** Processes that share the work; here they share this process. */
  readonly nodes?: number;
  /** Tasks each of them runs at once. */
  readonly atOnce?: number;
  /** Whether somebody follows the event log meanwhile. */
  readonly listening?: boolean;
}

/** Tasks a second, from `start()` until the last end of a preloaded backlog is written down. */
export function measureDrain(newPlace: NewPlace, params: DrainParams): Promise<number> {
  const { tasks, nodes = 1, atOnce, listening = false } = params;
  return inPlace(newPlace, async (place) => {
    const counter = new StartCounter();
    const options = { handler: counter.handler, nodes, ...(atOnce === undefined ? {} : { atOnce }) };
    const rotas = await Promise.all(Array.from({ length: nodes }, () => openRota(place.url, options)));
    const [first] = rotas;
    if (first === undefined) throw new Error("a drain needs a node");
    await loadBacklog(first, { count: tasks });
    if (listening) first.onEvent(() => {});
    await place.settle();

    const allStarted = counter.reached(tasks);
    const begun = performance.now();
    await Promise.all(rotas.map((rota) => rota.start()));
    await allStarted;
    await Promise.all(rotas.map((rota) => rota.drain()));
    const elapsedMs = performance.now() - begun;

    const { counts } = await first.tasks.counts();
    if (counts.done !== tasks) throw new Error(`${counts.done} of ${tasks} tasks are done`);
    await Promise.all(rotas.map((rota) => rota.stop()));
    return perSecond(tasks, elapsedMs);
  });
}

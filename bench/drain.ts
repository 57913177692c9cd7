import { inPlace, type NewPlace } from "./place.ts";
import { AT_ONCE, loadBacklog, openRota, perSecond, StartCounter } from "./workload.ts";

export interface DrainParams {
  readonly tasks: number;
  /** Processes that share the work; here they share this process. */
  readonly nodes?: number;
  /** Tasks each of them runs at once. */
  readonly atOnce?: number;
  /** Whether a listener follows the event log meanwhile. */
  readonly listening?: boolean;
  /** Whether each task is the only one of a session, or all are of one, which runs as many at once as there are slots. */
  readonly sessions?: "each" | "one";
}

/** Tasks a second, from `start()` until the last end of a preloaded backlog is written down. */
export function measureDrain(newPlace: NewPlace, params: DrainParams): Promise<number> {
  const { tasks, nodes = 1, atOnce = AT_ONCE, listening = false, sessions } = params;
  return inPlace(newPlace, async (place) => {
    const counter = new StartCounter();
    const options = { handler: counter.handler, nodes, atOnce };
    const rotas = await Promise.all(Array.from({ length: nodes }, () => openRota(place.url, options)));
    const [first] = rotas;
    if (first === undefined) throw new Error("a drain needs a node");
    if (sessions === "one") await first.sessions.update(sessionOf.one(), { maxConcurrent: nodes * atOnce });
    await loadBacklog(first, {
      count: tasks,
      sessionOf: sessions === undefined ? undefined : sessionOf[sessions],
    });
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

const sessionOf = {
  each: (n: number) => `session-${n}`,
  one: () => "session",
};

import { type NewStorage, withStorage } from "./empty-storage.ts";
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
  /** How many agents and tenants share the tasks; left out: `AGENTS`, of the tenant `default`. */
  readonly agents?: number;
  readonly tenants?: number;
}

/** Tasks a second, from `start()` until the last end of a preloaded backlog is written down. */
export function measureDrain(newStorage: NewStorage, params: DrainParams): Promise<number> {
  const { tasks, nodes = 1, atOnce = AT_ONCE, listening = false, sessions, agents, tenants = 0 } = params;
  return withStorage(newStorage, async (target) => {
    const counter = new StartCounter();
    const options = { handler: counter.handler, nodes, atOnce };
    const rotas = await Promise.all(Array.from({ length: nodes }, () => openRota(target.url, options)));
    const [first] = rotas;
    if (first === undefined) throw new Error("a drain needs a node");
    if (sessions === "one") await first.sessions.update(sessionOf.one(), { maxConcurrent: nodes * atOnce });
    const load = {
      sessionOf: sessions === undefined ? undefined : sessionOf[sessions],
      ...(agents !== undefined && { agents }),
    };
    const ids: string[] = [];
    for (let n = 0; n < tenants; n += 1) ids.push((await first.tenants.create({ name: `tenant ${n}` })).id);
    if (tenants === 0) await loadBacklog(first, { ...load, count: tasks });
    for (const id of ids) await loadBacklog(first.tenant(id), { ...load, count: tasks / tenants });
    if (listening) first.onEvent(() => {});
    await target.settle();

    const allStarted = counter.reached(tasks);
    const begun = performance.now();
    await Promise.all(rotas.map((rota) => rota.start()));
    await allStarted;
    await Promise.all(rotas.map((rota) => rota.drain()));
    const elapsedMs = performance.now() - begun;

    let done = 0;
    for (const each of tenants === 0 ? [first] : ids.map((id) => first.tenant(id)))
      done += (await each.tasks.counts()).counts.done ?? 0;
    if (done !== tasks) throw new Error(`${done} of ${tasks} tasks are done`);
    await Promise.all(rotas.map((rota) => rota.stop()));
    return perSecond(tasks, elapsedMs);
  });
}

const sessionOf = {
  each: (n: number) => `session-${n}`,
  one: () => "session",
};

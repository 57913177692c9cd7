import { type Backlog, fillStorage, measureWindow, windowTasks } from "../backlog.ts";
import { type NewStorage, postgresStorage, sqliteStorage, withStorage } from "../empty-storage.ts";
import { type Figure, figure, shareOf } from "../figure.ts";
import { inTurns } from "../in-turns.ts";
import type { Setting } from "../job.ts";
import { AGENTS } from "../workload.ts";

/** What waits behind the tasks that are measured in the small backlog. */
const SMALL_REST = 1_000;
const MANY_AGENTS = 50_000;

export function growthOnSqlite(setting: Setting): Promise<Figure[]> {
  return growth(sqliteStorage(setting), setting, { storage: "SQLite", largeAtLeast: 0.7 });
}

export function growthOnPostgres(setting: Setting): Promise<Figure[]> {
  return growth(postgresStorage(setting), setting, { storage: "PostgreSQL", largeAtLeast: 0.9 });
}

/** Whether starting a task costs more when many others wait, and when they belong to many agents. */
function growth(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  { storage, largeAtLeast }: { storage: string; largeAtLeast: number },
): Promise<Figure[]> {
  const window = { tasks: sizes.window };
  const few: Backlog = { tasks: windowTasks(window.tasks) + SMALL_REST, agents: AGENTS };
  const many: Backlog = { tasks: sizes.backlog, agents: AGENTS };
  const spread: Backlog = { tasks: sizes.backlog, agents: Math.min(MANY_AGENTS, sizes.backlog / 2) };

  return withStorage(newStorage, (large) =>
    withStorage(newStorage, async (wide) => {
      console.error(`  filling ${storage} with ${many.tasks} tasks, twice`);
      const loaded = await fillStorage(large, many);
      const loadedWide = await fillStorage(wide, spread);
      const rates = await inTurns(turns, {
        small: () =>
          withStorage(newStorage, async (target) => {
            await fillStorage(target, few);
            return measureWindow(target, window);
          }),
        large: () => measureWindow(large, window),
        wide: () => measureWindow(wide, window),
      });
      const waiting = `${sizes.backlog.toLocaleString("en")} waiting`;
      const agents = `${spread.agents.toLocaleString("en")} agents`;
      return [
        figure(`drain, 1,000 waiting, ${storage}`, "tasks/s", rates.small),
        figure(`drain, ${waiting}, ${storage}`, "tasks/s", rates.large),
        figure(`drain, ${waiting}, ${agents}, ${storage}`, "tasks/s", rates.wide),
        shareOf(`${waiting} / 1,000 waiting, ${storage}`, {
          of: rates.large,
          against: rates.small,
          goal: { atLeast: largeAtLeast },
        }),
        shareOf(`${agents} / ${AGENTS} agents, ${storage}`, {
          of: rates.wide,
          against: rates.large,
          goal: { atLeast: 0.5 },
        }),
        figure(`loading ${waiting}, ${storage}`, "s", [loaded.seconds]),
        figure(`loading ${waiting}, ${agents}, ${storage}`, "s", [loadedWide.seconds]),
        figure(`memory before loading, ${storage}`, "MiB", [loaded.rssBeforeMib]),
        figure(`memory with ${waiting}, ${storage}`, "MiB", [loaded.rssMib]),
      ];
    }),
  );
}

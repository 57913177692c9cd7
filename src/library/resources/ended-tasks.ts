import type { Engine } from "../../engine/engine.ts";
import type { EndedTask } from "../../storage/storage.ts";

export interface EndedTasksOptions {
  /** The tenant of the tasks. */
  readonly tenant: string;
  readonly engine: Engine;
  /** Called when tasks have ended: their callbacks may be due. */
  readonly onEnded: () => void;
}

/** What follows when a caller ends tasks: aborts those that run in this process, and counts all of them. */
export class EndedTasks {
  readonly #options: EndedTasksOptions;

  constructor(options: EndedTasksOptions) {
    this.#options = options;
  }

  handle(tasks: readonly EndedTask[]): void {
    if (tasks.length === 0) return;
    const { tenant, engine, onEnded } = this.#options;
    engine.fence(
      tasks.flatMap(({ token }) => token ?? []),
      "cancelled",
    );
    for (const task of tasks) engine.metrics.of(tenant).cancelled(task);
    onEnded();
  }
}

import type { Engine } from "../../engine/engine.ts";
import type { EndedTask } from "../../storage/storage.ts";

export interface EndedTasksOptions {
  /** Whose they are. */
  readonly tenant: string;
  readonly engine: Engine;
  /** Told when there are some, of which somebody may want to be told. */
  readonly onEnded: () => void;
}

/** What follows when somebody ends tasks: those that run here are stopped, and all are counted. */
export class EndedTasks {
  readonly #options: EndedTasksOptions;

  constructor(options: EndedTasksOptions) {
    this.#options = options;
  }

  note(tasks: readonly EndedTask[]): void {
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

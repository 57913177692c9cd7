import { User } from "./user.ts";

/** Looks at what there is, in every way there is to look. */
export class Reader extends User {
  protected readonly everyMs = 250;

  protected async step(): Promise<void> {
    const { tasks } = this.rota;
    const begun = performance.now();
    const page = await tasks.list({ limit: 50 });
    this.tally.list.add(performance.now() - begun);
    const some = page.tasks.at(this.chance.between(0, 49));
    switch (this.chance.pick(["get", "explain", "wait", "counts", "stats", "deliveries", "lanes"] as const)) {
      case "get":
        return void (some && (await tasks.get(some.taskId)));
      case "explain":
        return void (some && (await tasks.explain(some.taskId)));
      case "wait":
        return this.#wait(some?.taskId);
      case "counts":
        return void (await tasks.counts());
      case "stats":
        return void (await this.rota.stats());
      case "deliveries":
        return void (await this.rota.webhooks.deliveries({ limit: 20 }));
      case "lanes":
        return void (await this.rota.lanes.list());
    }
  }

  /** Gives up soon: a wait that is abandoned must leave nothing behind. */
  async #wait(taskId: string | undefined): Promise<void> {
    if (taskId === undefined) return;
    try {
      await this.rota.tasks.wait(taskId, { timeoutMs: this.chance.between(1, 500) });
    } catch (error) {
      if (!(error instanceof Error && error.name === "TimeoutError")) throw error;
    }
  }
}

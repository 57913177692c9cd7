import { User } from "./user.ts";

/** Submits batches whose tasks wait for each other. */
export class Batcher extends User {
  protected readonly everyMs = 1_500;

  protected async step(): Promise<void> {
    const tasks = Array.from({ length: this.chance.between(4, 15) }, (_, index) => ({
      key: `task-${index}`,
      instruction: "a part of it",
      ...(index > 0 && this.chance.oneIn(2)
        ? { dependsOn: [`task-${this.chance.between(0, index - 1)}`] }
        : {}),
    }));
    const { batchId } = await this.rota.tasks.submitBatch({
      agentId: "worker-0",
      parallelism: this.chance.between(1, 5),
      batchCallbackUrl: this.callbackUrl,
      tasks,
    });
    this.tally.accepted += tasks.length;
    await this.rota.tasks.getBatch(batchId);
    if (this.chance.oneIn(5)) await this.rota.tasks.cancelBatch(batchId);
  }
}

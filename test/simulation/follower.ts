import type { SimulatedProcess } from "./process.ts";
import type { World } from "./world.ts";

const LOOK_MS = 700;

/** Reads the events from the first on, at one process after the other: where it has to begin anew, it goes on. */
export class Follower {
  readonly seqs: number[] = [];
  readonly #world: World;
  #at: SimulatedProcess | null = null;

  constructor(world: World) {
    this.#world = world;
    this.#watch();
  }

  /** Looks now and then whether the process it reads at is still there. */
  #watch(): void {
    const { outside, open } = this.#world;
    if (this.#at === null || this.#at.rota === null) {
      const [process] = outside.chance.shuffle(open);
      this.#at = process ?? null;
      if (process !== undefined) void this.#read(process);
    }
    outside.plan(LOOK_MS, "a follower looks", () => this.#watch());
  }

  async #read(process: SimulatedProcess): Promise<void> {
    const { seqs } = this;
    await process
      .ask("follow", async (rota) => {
        for await (const { seq } of rota.events({ after: seqs.at(-1) ?? 0 })) {
          if (this.#at !== process) return;
          seqs.push(seq);
        }
      })
      .catch(() => {});
    if (this.#at === process) this.#at = null;
  }
}

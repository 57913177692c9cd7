import type { FloodCount } from "../flood.ts";
import type { HttpCaller } from "../http-caller.ts";
import type { NeighbourSizes } from "../sizes.ts";

/** One key's attempt to hurt its neighbours. */
export interface Attack {
  /** Before the victim has any work. */
  readonly prepare?: (scene: Scene) => Promise<void>;
  /** While the victim is measured. */
  readonly run?: (scene: Scene) => Promise<void>;
}

export interface Scene {
  readonly node: HttpCaller;
  readonly sizes: NeighbourSizes;
  /** What was asked of the node; preparations that are no part of the attack are not counted. */
  readonly counted: FloodCount;
  /** Whether the time of the current step is not over yet. */
  readonly hasTime: () => boolean;
}

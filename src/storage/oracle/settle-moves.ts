import { settleBatches } from "./batches.ts";
import { releaseDependants } from "./release-dependants.ts";
import type { OracleState } from "./state.ts";

/** What follows from the moves of an operation: dependants hear of ends, batches let others in. */
export function settleMoves(state: OracleState, limit?: number): void {
  releaseDependants(state, limit);
  settleBatches(state);
}

import { settleBatches } from "./batches.ts";
import { releaseDependants } from "./release-dependants.ts";
import { settleSessions } from "./sessions.ts";
import { type OracleState, tell } from "./state.ts";

/** What follows from the moves of an operation: dependants hear of ends, sessions and batches let others in. */
export function settleMoves(state: OracleState, limit?: number): void {
  releaseDependants(state, limit);
  settleSessions(state);
  settleBatches(state);
  if (state.releases.length > 0) tell(state, { kind: "release" });
}

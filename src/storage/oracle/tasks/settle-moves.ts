import { settleSessions } from "../sessions/settle-sessions.ts";
import { type OracleState, signal } from "../state.ts";
import { completeBatches } from "./batches.ts";
import { settleBatchesAndKeys } from "./concurrency-keys.ts";
import { RELEASED_MAX, releaseDependants } from "./release-dependants.ts";

/** What follows from the moves of an operation: dependants follow ends; sessions, batches and keys admit other tasks. */
export function settleMoves(state: OracleState, limit = RELEASED_MAX): void {
  let left = limit;
  do {
    left -= releaseDependants(state, left);
    // Other tasks may depend on those that a session ends as stale.
    settleSessions(state);
  } while (state.releases.length > 0 && left > 0);
  settleBatchesAndKeys(state);
  completeBatches(state);
  if (state.releases.length > 0) signal(state, { kind: "release" });
}

import type { OracleState } from "../state.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function release(state: OracleState, { limit }: { limit: number }): { more: boolean } {
  settleMoves(state, limit);
  preempt(state);
  return { more: state.releases.length > 0 };
}

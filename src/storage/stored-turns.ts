import type { SessionTurns } from "./session-storage.ts";

/** A turn as a database keeps it. */
export interface StoredTurn {
  readonly id: string;
  readonly spec: string;
  readonly result: string;
}

export function toTurns(stored: readonly StoredTurn[]): Pick<SessionTurns, "turns" | "turnsLength"> {
  return {
    turns: stored.map(({ id, spec, result }) => ({
      taskId: id,
      work: JSON.parse(spec).work,
      result: JSON.parse(result),
    })),
    turnsLength: stored.reduce((sum, { spec, result }) => sum + spec.length + result.length, 0),
  };
}

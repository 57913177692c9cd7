import type { SteeredResult } from "../model/session.ts";
import type { Turn } from "../model/turn.ts";
import type { SessionTurns } from "./session-storage.ts";

/** A turn as a database keeps it. */
export interface StoredTurn {
  readonly id: string;
  readonly spec: string;
  readonly result: string;
}

export function toTurns(stored: readonly StoredTurn[]): Pick<SessionTurns, "turns" | "turnsLength"> {
  const turns = new Map<string, Turn>();
  for (const { id, spec, result } of stored) {
    const turn: Turn = { taskId: id, work: JSON.parse(spec).work, result: JSON.parse(result) };
    if (!isSteered(turn.result)) turns.set(id, turn);
    else addToTurn(turns, turn.result.steeredInto, turn);
  }
  return {
    turns: [...turns.values()],
    turnsLength: stored.reduce((sum, { spec, result }) => sum + spec.length + result.length, 0),
  };
}

function isSteered(result: unknown): result is SteeredResult {
  return (
    typeof result === "object" &&
    result !== null &&
    Object.keys(result).length === 1 &&
    "steeredInto" in result &&
    typeof result.steeredInto === "string"
  );
}

/** A message that a running attempt took is part of the message which that attempt answered. */
function addToTurn(turns: Map<string, Turn>, taskId: string, { work: added }: Turn): void {
  const turn = turns.get(taskId);
  if (turn?.work.kind !== "message" || added.kind !== "message") return;
  const message = `${turn.work.message}\n${added.message}`;
  turns.set(taskId, { ...turn, work: { ...turn.work, message } });
}

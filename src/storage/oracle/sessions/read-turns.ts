import { TURNS_BYTES_MAX, TURNS_LOOKED_AT } from "../../../model/turn.ts";
import type { ReadTurnsParams, SessionTurns } from "../../storage.ts";
import { toTurns } from "../../stored-turns.ts";
import { type OracleState, type OracleTask, sessionOf } from "../state.ts";
import { tasksOfSession } from "./settle-sessions.ts";

export function readTurns(state: OracleState, { seq, token, limit }: ReadTurnsParams): SessionTurns | null {
  const task = state.tasks.find((candidate) => candidate.seq === seq);
  const session = task === undefined ? undefined : sessionOf(state, task);
  if (task === undefined || session === undefined) return null;
  if (task.held?.token !== token || task.sessionPosition <= session.generationPosition) return null;
  const chosen = tasksOfSession(state, session)
    .sort((a, b) => b.seq - a.seq)
    .slice(0, TURNS_LOOKED_AT)
    .filter(({ state: now, agent }) => now === "done" && agent === task.agent)
    .filter(
      ({ sessionPosition }) =>
        sessionPosition > session.generationPosition && sessionPosition < task.sessionPosition,
    )
    .sort((a, b) => b.sessionPosition - a.sessionPosition)
    .slice(0, limit);
  const { generation, contextWindow } = session;
  const stored = upToBytes(chosen).map(({ id, spec, result }) => ({
    id,
    spec: JSON.stringify(spec),
    result: JSON.stringify(result) ?? "null",
  }));
  return { generation, contextWindow, ...toTurns(stored.reverse()) };
}

function upToBytes(tasks: readonly OracleTask[]): OracleTask[] {
  let bytes = 0;
  return tasks.filter(({ spec, result }) => {
    bytes += Buffer.byteLength(JSON.stringify(spec)) + Buffer.byteLength(JSON.stringify(result) ?? "null");
    return bytes <= TURNS_BYTES_MAX;
  });
}

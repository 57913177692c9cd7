import { TAKEN_AT_ONCE, type TakenMessage } from "../../../model/session.ts";
import type { TakeMessagesParams } from "../../storage.ts";
import { type OracleState, type OracleTask, sessionOf, takerOf } from "../state.ts";
import { tasksOfSession } from "./settle-sessions.ts";

export function takeMessages(
  state: OracleState,
  { seq, token, after }: TakeMessagesParams,
): readonly TakenMessage[] {
  const taker = state.tasks.find((task) => task.seq === seq && task.held?.token === token);
  const session = taker === undefined ? undefined : sessionOf(state, taker);
  if (taker === undefined || session === undefined) return [];
  const now = state.clock.now();
  const isOffered = ({ steerUntil, takenBy, agent }: OracleTask) =>
    takenBy === null && steerUntil !== null && steerUntil > now && agent === taker.agent;
  const chosen = upToBytes(
    tasksOfSession(state, session)
      .filter((task) => task.parked === "session" && task.sessionPosition > after)
      .filter((task) => takerOf(state, task) === taker || isOffered(task))
      .sort((a, b) => a.sessionPosition - b.sessionPosition)
      .slice(0, TAKEN_AT_ONCE.messages),
  );
  for (const task of chosen) task.takenBy = { seq, token };
  return chosen.flatMap(({ id: taskId, sessionPosition: position, spec: { work } }) =>
    work.kind === "message" ? [{ taskId, message: work.message, position }] : [],
  );
}

/** The first always fits. */
function upToBytes(tasks: readonly OracleTask[]): OracleTask[] {
  let bytes = 0;
  return tasks.filter(({ spec }, index) => {
    bytes += Buffer.byteLength(JSON.stringify(spec));
    return index === 0 || bytes <= TAKEN_AT_ONCE.bytes;
  });
}

import type { TaskSession } from "../../executors/executor.ts";
import type { TakenMessage } from "../../model/session.ts";
import { TURNS_MAX } from "../../model/turn.ts";
import type { Storage } from "../../storage/storage.ts";
import type { Attempt } from "./attempt.ts";
import { type PatientReadParams, readPatiently } from "./patient-read.ts";

interface SessionReadParams extends Omit<PatientReadParams<unknown>, "read" | "signal"> {
  readonly storage: Storage;
  readonly attempt: Attempt;
}

export interface TaskSessionParams extends SessionReadParams {
  /** How many turns to read. */
  readonly turns: number;
}

/** Reads the session of a task for its attempt; null when it has none. Rejects when the attempt is over. */
export async function readTaskSession(params: TaskSessionParams): Promise<TaskSession | null> {
  const { storage, attempt, turns, ...patience } = params;
  const { record, token, signal } = attempt;
  if (record.session === null) return null;
  const limit = Math.min(Math.max(Math.trunc(turns) || 0, 0), TURNS_MAX);
  const session = await readPatiently({
    ...patience,
    signal,
    read: () => storage.sessions.readTurns({ seq: record.seq, token, limit }),
  });
  signal.throwIfAborted();
  if (session === null) throw new Error("the attempt is over: the session of its task went on without it");
  const { turnsLength, ...shown } = session;
  attempt.hold(turnsLength);
  return shown;
}

export interface TakeMessagesParams extends SessionReadParams {
  /** The position of the last message that the attempt has got. */
  readonly after: number;
}

/** Takes messages in mode `steer` for an attempt. Rejects when the attempt is over. */
export async function takeMessages(params: TakeMessagesParams): Promise<readonly TakenMessage[]> {
  const { storage, attempt, after, ...patience } = params;
  const { record, token, signal } = attempt;
  if (record.session === null) return [];
  const taken = await readPatiently({
    ...patience,
    signal,
    read: () => storage.sessions.takeMessages({ seq: record.seq, token, after }),
  });
  signal.throwIfAborted();
  attempt.hold(taken.reduce((sum, { message }) => sum + message.length, 0));
  return taken;
}

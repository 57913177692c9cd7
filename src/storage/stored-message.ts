import type { TakenMessage } from "../model/session.ts";

/** A message that an attempt has taken, as a database keeps it. */
export interface StoredMessage {
  readonly id: string;
  readonly place: number | string;
  readonly spec: string;
}

export function toTakenMessage({ id, place, spec }: StoredMessage): TakenMessage {
  return { taskId: id, message: JSON.parse(spec).work.message, position: Number(place) };
}

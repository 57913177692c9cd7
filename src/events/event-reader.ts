import type { RotaEvent } from "../model/event.ts";
import type { EventLog } from "./event-log.ts";
import { LogReader, type LogReaderOptions } from "./log-reader.ts";

export interface EventReaderOptions extends LogReaderOptions {
  readonly agentId?: string | undefined;
  readonly batchId?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly scheduleId?: number | undefined;
}

/** One reader's way through the events, or through those it asked for. */
export class EventReader extends LogReader<RotaEvent, RotaEvent> {
  constructor(log: EventLog, options: EventReaderOptions = {}) {
    super(log, (event) => (fits(event, options) ? event : undefined), options);
  }
}

function fits(event: RotaEvent, { agentId, batchId, sessionKey, scheduleId }: EventReaderOptions): boolean {
  return (
    (agentId === undefined || event.agentId === agentId) &&
    (batchId === undefined || event.batchId === batchId) &&
    (sessionKey === undefined || event.sessionKey === sessionKey) &&
    (scheduleId === undefined || event.scheduleId === scheduleId)
  );
}

import type { RotaEvent } from "../model/event.ts";
import { type EventLog, eventSource } from "./event-log.ts";
import { LogReader, type LogReaderOptions } from "./log-reader.ts";

export interface EventReaderOptions extends LogReaderOptions {
  readonly tenant: string;
  readonly agentId?: string | undefined;
  readonly batchId?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly scheduleId?: number | undefined;
}

/** One reader of the events of a tenant, or of those that match its options. */
export class EventReader extends LogReader<RotaEvent, RotaEvent> {
  constructor(log: EventLog, options: EventReaderOptions) {
    const { tenant, agentId: agent, batchId: batch, sessionKey: session, scheduleId: schedule } = options;
    const source = eventSource(log, { tenant, agent, batch, session, schedule });
    super(log, (event) => (fits(event, options) ? event : undefined), options, source);
  }
}

function fits(event: RotaEvent, options: EventReaderOptions): boolean {
  const { tenant, agentId, batchId, sessionKey, scheduleId } = options;
  return (
    event.tenantId === tenant &&
    (agentId === undefined || event.agentId === agentId) &&
    (batchId === undefined || event.batchId === batchId) &&
    (sessionKey === undefined || event.sessionKey === sessionKey) &&
    (scheduleId === undefined || event.scheduleId === scheduleId)
  );
}

import { STATE_AFTER } from "../../../model/event.ts";
import type { EventFilter, EventPage, LogMark, ReadEventsParams, StoredEvent } from "../../storage.ts";
import { copyJson, type OracleEvent, type OracleState } from "../state.ts";

export function readEvents(
  state: OracleState,
  { after, limit, bytesMax, filter }: ReadEventsParams,
): EventPage {
  const all = state.events
    .filter((event) => event.seq > after)
    .flatMap((event) => toStored(state, event) ?? [])
    .filter((event) => filter === undefined || isAskedFor(event, filter));
  const events: StoredEvent[] = [];
  let bytes = 0;
  for (const event of all.slice(0, limit)) {
    if (bytes >= bytesMax && events.length > 0) break;
    events.push(event);
    bytes += event.bytes;
  }
  const newest = Math.max(after, state.events.at(-1)?.seq ?? 0);
  const upTo = filter !== undefined && events.length === all.length ? newest : (events.at(-1)?.seq ?? newest);
  return { events, more: events.length < all.length, upTo, mark: eventMark(state, { seq: after }) };
}

function isAskedFor(event: StoredEvent, filter: EventFilter): boolean {
  const { tenant, agent, batch, session, schedule } = filter;
  return (
    event.tenant === tenant &&
    (agent === undefined || event.agent === agent) &&
    (batch === undefined || event.batch === batch) &&
    (session === undefined || event.session === session) &&
    (schedule === undefined || event.schedule === schedule)
  );
}

export function eventMark(state: OracleState, { seq }: { seq: number }): LogMark | null {
  const event = state.events.find((candidate) => candidate.seq === seq);
  return event === undefined ? null : { type: event.type, at: event.at };
}

export function lastEventUntil(state: OracleState, { at }: { at: number }): number {
  return state.events.findLast((event) => event.at <= at)?.seq ?? 0;
}

export function eventRange(state: OracleState): { oldest: number; newest: number } {
  const newest = state.newestEventSeq;
  return { oldest: state.events[0]?.seq ?? newest + 1, newest };
}

/** Undefined if the task is deleted: its events are never returned. */
export function toStored(state: OracleState, event: OracleEvent): StoredEvent | undefined {
  const task = state.tasks.find((candidate) => candidate.seq === event.taskSeq);
  if (task === undefined) return undefined;
  const { seq, type, at, data } = event;
  return {
    seq,
    type,
    at,
    tenant: task.tenant,
    taskId: task.id,
    agent: task.agent,
    lane: task.lane,
    batch: task.batch,
    session: task.session,
    schedule: task.schedule,
    state: STATE_AFTER[type] ?? data?.state ?? task.state,
    result: type === "task.completed" ? copyJson(task.result) : undefined,
    data: copyJson(data),
    bytes: lengthOf(type === "task.completed" ? task.result : undefined) + lengthOf(data ?? undefined),
  };
}

function lengthOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}

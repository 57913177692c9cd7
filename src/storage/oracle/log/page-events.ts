import type { PageEventsParams, StoredEvent } from "../../storage.ts";
import type { OracleState } from "../state.ts";
import { toStored } from "./read-events.ts";

export function pageEvents(
  state: OracleState,
  params: PageEventsParams,
): { events: StoredEvent[]; next: number | null } {
  const { tenant, after, before, type, taskId, limit, bytesMax } = params;
  const all = state.events
    .flatMap((event) => toStored(state, event) ?? [])
    .filter((event) => event.tenant === tenant && (type === undefined || event.type === type))
    .filter((event) => taskId === undefined || event.taskId === taskId)
    .filter(({ seq }) => seq > (after ?? 0) && (before === undefined || seq < before));
  if (after === undefined) all.reverse();
  const events: StoredEvent[] = [];
  let bytes = 0;
  for (const event of all.slice(0, limit)) {
    if (bytes >= bytesMax && events.length > 0) break;
    events.push(event);
    bytes += event.bytes;
  }
  return { events, next: events.length < all.length ? (events.at(-1)?.seq ?? null) : null };
}

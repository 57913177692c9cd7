import { toEvent } from "../../events/to-event.ts";
import type { EventPage, EventPageFilter } from "../../interface/rota.ts";
import { parseEventPageFilter } from "../../model/input/events-options.ts";
import type { Redactor } from "../../model/redactor.ts";
import { looksLikeTaskId } from "../../model/task-id.ts";
import type { Storage } from "../../storage/storage.ts";

/** The approximate size of one page of events. A single result can take a mebibyte. */
const PAGE_BYTES_MAX = 4 * 1_048_576;

interface EventPageParams {
  readonly storage: Storage;
  readonly tenant: string;
  readonly redactor: Redactor;
}

/** A page of the events of a tenant. */
export async function eventPage(
  { storage, tenant, redactor }: EventPageParams,
  filter: EventPageFilter,
): Promise<EventPage> {
  const parsed = parseEventPageFilter(filter);
  if (parsed.taskId !== undefined && !looksLikeTaskId(parsed.taskId)) return NOTHING;
  const { events, next } = await storage.events.page({ ...parsed, tenant, bytesMax: PAGE_BYTES_MAX });
  return { events: events.map((event) => toEvent(event, redactor)), count: events.length, next };
}

const NOTHING: EventPage = { events: [], count: 0, next: null };

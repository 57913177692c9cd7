import type { RotaEvent } from "../model/event.ts";
import type { Redactor } from "../model/redactor.ts";
import { type EventFilter, LOOKED_MAX, type Storage } from "../storage/storage.ts";
import { FollowedLog, type FollowedLogOptions } from "./followed-log.ts";
import type { LogSource } from "./log-source.ts";
import { toEvent } from "./to-event.ts";

/** The size of a page. It ends after the first large result, which can take a mebibyte, so that other work is not blocked. */
const PAGE = { limit: 200, bytesMax: 262_144 } as const;

export interface EventLogOptions extends FollowedLogOptions, EventSourceParams {}

export interface EventSourceParams {
  readonly storage: Storage;
  /** Masks secrets, by the current configuration. */
  readonly redactor: () => Redactor;
}

/** The events of tasks and batches, as users see them. */
export class EventLog extends FollowedLog<RotaEvent> {
  readonly storage: Storage;
  readonly redactor: () => Redactor;

  constructor({ storage, redactor, ...others }: EventLogOptions) {
    super(eventSource({ storage, redactor }), others);
    this.storage = storage;
    this.redactor = redactor;
  }
}

/** All events, or those that match the filter. */
export function eventSource(
  { storage: { events }, redactor }: EventSourceParams,
  filter?: EventFilter,
): LogSource<RotaEvent> {
  return {
    name: "events",
    leavesHoles: false,
    range: () => events.range(),
    mark: (seq) => events.mark({ seq }),
    lastUntil: (at) => events.lastUntil({ at }),
    async read(after) {
      const { events: stored, ...page } = await events.read({
        after,
        ...PAGE,
        ...(filter === undefined ? {} : { filter }),
      });
      const shown = redactor();
      const entries = stored.map((event) => {
        const { seq, bytes, type, at } = event;
        return { seq, bytes, value: toEvent(event, shown), mark: { type, at } };
      });
      const looked = Math.max(entries.length, Math.min(page.upTo - after, LOOKED_MAX));
      return { entries, looked, ...page };
    },
  };
}

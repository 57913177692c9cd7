import type { RotaEvent } from "../model/event.ts";
import { type EventFilter, LOOKED_MAX, type Storage } from "../storage/storage.ts";
import { FollowedLog, type FollowedLogOptions, type LogSource } from "./followed-log.ts";
import { toEvent } from "./to-event.ts";

/** What is read at once. A result can take a mebibyte: a page ends with the first that is large, so that others get a turn. */
const PAGE = { limit: 200, bytesMax: 262_144 } as const;

/** What happens to tasks and batches, as users see it. */
export class EventLog extends FollowedLog<RotaEvent> {
  readonly storage: Storage;

  constructor({ storage, ...others }: FollowedLogOptions & { readonly storage: Storage }) {
    super(eventSource(storage), others);
    this.storage = storage;
  }
}

/** All events, or those that somebody asked for. */
export function eventSource({ events }: Storage, filter?: EventFilter): LogSource<RotaEvent> {
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
      const entries = stored.map((event) => {
        const { seq, bytes, type, at } = event;
        return { seq, bytes, value: toEvent(event), mark: { type, at } };
      });
      const looked = Math.max(entries.length, Math.min(page.upTo - after, LOOKED_MAX));
      return { entries, looked, ...page };
    },
  };
}

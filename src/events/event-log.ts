import type { Clock } from "../model/clock.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import type { Storage } from "../storage/storage.ts";
import { FollowedLog, type LogSource } from "./followed-log.ts";
import { toEvent } from "./to-event.ts";

/** What is read at once. A result can take a mebibyte, so that many of them must not be read together. */
const PAGE = { limit: 200, bytesMax: 4 * 1_048_576 } as const;

/** What happens to tasks and batches, as users see it. */
export class EventLog extends FollowedLog<RotaEvent> {
  readonly storage: Storage;

  constructor({
    storage,
    ...others
  }: { readonly storage: Storage; readonly clock: Clock; readonly log: Log }) {
    super(eventSource(storage), others);
    this.storage = storage;
  }
}

function eventSource({ events }: Storage): LogSource<RotaEvent> {
  return {
    name: "events",
    range: () => events.range(),
    async read(after) {
      const { events: stored, more, upTo } = await events.read({ after, ...PAGE });
      const entries = stored.map((event) => ({ seq: event.seq, bytes: event.bytes, value: toEvent(event) }));
      return { entries, more, upTo };
    },
  };
}

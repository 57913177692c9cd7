import type { RotaEvent } from "../../../src/client/index.ts";
import type { Query } from "../queries/query.ts";
import type { QueryClient } from "../queries/query-client.ts";
import type { LiveFeed } from "./live-feed.ts";
import { Store } from "./store.ts";

/** A query is refetched this long after the first event that affects it, */
const FIRST_MS = 250;
/** but not more often than this, */
const EVERY_MS = 1_000;
/** and while the server is busy not more often than this. */
const BUSY_EVERY_MS = 2_000;

/** Keeps the queries on the screen current, with as few requests as possible. */
export class LiveQueries {
  /** The user has paused updates. */
  readonly paused = new Store(false);
  readonly #queries: QueryClient;
  readonly #feed: LiveFeed;
  readonly #due = new Map<string, ReturnType<typeof setTimeout>>();
  /** Queries to refetch after the pause. */
  readonly #missed = new Set<string>();
  readonly #readAt = new Map<string, number>();
  #leave: (() => void) | undefined;

  constructor(queries: QueryClient, feed: LiveFeed) {
    this.#queries = queries;
    this.#feed = feed;
  }

  start(): void {
    const leaveEvents = this.#feed.subscribe({
      onEvents: (events) => this.#take(events),
      onChanged: () => {
        for (const query of this.#queries.all()) if (query.meta?.live !== undefined) this.#changed(query);
      },
    });
    const leaveStatus = this.#feed.status.subscribe(() => {
      if (this.#feed.status.get() === "live") this.#readFailed();
    });
    this.#leave = () => {
      leaveEvents();
      leaveStatus();
    };
  }

  stop(): void {
    this.#leave?.();
    for (const timer of this.#due.values()) clearTimeout(timer);
    this.#due.clear();
  }

  togglePaused(): void {
    this.paused.set(!this.paused.get());
    if (this.paused.get()) return;
    for (const query of this.#live()) {
      if (this.#missed.has(query.hash)) this.#mark(query);
    }
    this.#missed.clear();
  }

  #take(events: readonly RotaEvent[]): void {
    // Also queries that are not on screen: a user who goes back to a list finds its rows current.
    for (const query of this.#queries.all()) {
      const { live, patch, isHeld } = query.meta ?? {};
      if (!this.paused.get() && patch !== undefined && query.state.data !== undefined) {
        const patched = patch(query.state.data as never, events);
        if (patched !== query.state.data) {
          query.setData(patched, query.state.dataUpdatedAt);
        }
      }
      if (live !== undefined && !isHeld?.() && events.some(live)) this.#changed(query);
    }
  }

  /** Refetches failed queries once the server is reachable again. */
  #readFailed(): void {
    for (const query of this.#live()) if (query.state.error !== null) this.#mark(query);
  }

  /** Queries that are on screen. */
  #live(): Query[] {
    return this.#queries.all().filter((query) => query.isActive() && query.meta?.live !== undefined);
  }

  /** A query that is not on screen is read when it is shown again, however recently it was read. */
  #changed(query: Query): void {
    if (query.isActive()) this.#mark(query);
    else query.outdate();
  }

  #mark(query: Query): void {
    const { hash } = query;
    if (this.paused.get()) this.#missed.add(hash);
    if (this.paused.get() || this.#due.has(hash)) return;
    const everyMs = this.#feed.status.get() === "busy" ? BUSY_EVERY_MS : EVERY_MS;
    const sinceMs = performance.now() - (this.#readAt.get(hash) ?? -everyMs);
    this.#readAfter(query, Math.max(FIRST_MS, everyMs - sinceMs));
  }

  #readAfter(query: Query, ms: number): void {
    const { hash } = query;
    const read = () => {
      this.#due.delete(hash);
      if (this.paused.get()) {
        this.#missed.add(hash);
      } else if (query.state.isFetching) {
        // The running request began before this event, so its response may not include it.
        this.#readAfter(query, FIRST_MS);
      } else if (query.meta?.isHeld?.()) {
        query.outdate();
      } else {
        this.#readAt.set(hash, performance.now());
        query.invalidate();
      }
    };
    this.#due.set(hash, setTimeout(read, ms));
  }
}

import type { Query, QueryClient } from "@tanstack/react-query";
import type { RotaEvent } from "../../../src/client/index.ts";
import type { LiveFeed } from "./live-feed.ts";
import { Store } from "./store.ts";

/** A query is read anew this long after the first event that concerns it, */
const FIRST_MS = 250;
/** but no more often than this, */
const EVERY_MS = 1_000;
/** and while the server is busy than this. */
const BUSY_EVERY_MS = 2_000;

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: LiveMeta;
  }
}

/** How a query lives. Without `live` it is read when it is shown, and never by itself. */
export interface LiveMeta extends Record<string, unknown> {
  /** Whether an event may have changed what the query answers. */
  readonly live?: (event: RotaEvent) => boolean;
  /** What an event says itself is put into what is on the screen, at once. Returns the same data where nothing changes. */
  readonly patch?: (data: never, events: readonly RotaEvent[]) => unknown;
}

/** Keeps the queries of what is on the screen up to date, without asking more than needed. */
export class LiveQueries {
  /** A person reads: nothing moves until they say so. */
  readonly paused = new Store(false);
  readonly #queries: QueryClient;
  readonly #feed: LiveFeed;
  readonly #due = new Map<string, ReturnType<typeof setTimeout>>();
  /** What would have been read while paused. */
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
        for (const query of this.#live()) this.#mark(query);
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
      if (this.#missed.has(query.queryHash)) this.#mark(query);
    }
    this.#missed.clear();
  }

  #take(events: readonly RotaEvent[]): void {
    // Also queries that are not on screen: a user who goes back to a list finds its rows current.
    for (const query of this.#queries.getQueryCache().findAll()) {
      const { live, patch } = query.meta ?? {};
      if (!this.paused.get() && patch !== undefined && query.state.data !== undefined) {
        const patched = patch(query.state.data as never, events);
        if (patched !== query.state.data) {
          this.#queries.setQueryData(query.queryKey, patched, { updatedAt: query.state.dataUpdatedAt });
        }
      }
      if (live !== undefined && query.isActive() && events.some(live)) this.#mark(query);
    }
  }

  /** The server can be reached again: what could not be read meanwhile can be now. */
  #readFailed(): void {
    for (const query of this.#live()) if (query.state.error !== null) this.#mark(query);
  }

  /** Queries that are on screen. */
  #live(): Query[] {
    const cache = this.#queries.getQueryCache();
    return cache.findAll({ type: "active" }).filter(({ meta }) => meta?.live !== undefined);
  }

  #mark(query: Query): void {
    const { queryHash } = query;
    if (this.paused.get()) this.#missed.add(queryHash);
    if (this.paused.get() || this.#due.has(queryHash)) return;
    const everyMs = this.#feed.status.get() === "busy" ? BUSY_EVERY_MS : EVERY_MS;
    const sinceMs = performance.now() - (this.#readAt.get(queryHash) ?? -everyMs);
    this.#readAfter(query, Math.max(FIRST_MS, everyMs - sinceMs));
  }

  #readAfter(query: Query, ms: number): void {
    const { queryHash, queryKey } = query;
    const read = () => {
      this.#due.delete(queryHash);
      if (this.paused.get()) {
        this.#missed.add(queryHash);
      } else if (query.state.fetchStatus === "fetching") {
        // What is on its way was asked for before this event: it may not tell of it.
        this.#readAfter(query, FIRST_MS);
      } else {
        this.#readAt.set(queryHash, performance.now());
        void this.#queries.invalidateQueries({ queryKey, exact: true });
      }
    };
    this.#due.set(queryHash, setTimeout(read, ms));
  }
}

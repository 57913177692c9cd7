import type { RotaEvent } from "../../../src/client/index.ts";
import { keepEqual } from "./keep-equal.ts";

/** How long the data of a query that nothing shows any more is kept. */
const KEPT_MS = 5 * 60_000;

export type QueryKey = readonly unknown[];

/** The pages of a list that have been read so far. */
export interface InfiniteData<Page> {
  readonly pages: readonly Page[];
}

export interface QueryState<Data> {
  readonly data: Data | undefined;
  /** Why the last fetch failed. Null: it did not, or nothing has been read yet. */
  readonly error: Error | null;
  readonly dataUpdatedAt: number;
  readonly isFetching: boolean;
  /** Whether the fetch that runs, or ran last, is of a further page. */
  readonly isOfNextPage: boolean;
  /** The data may have changed since it was read. */
  readonly isInvalidated: boolean;
}

/** How a query is kept current. Without `live` it is fetched when it is shown, and not again by itself. */
export interface QueryMeta {
  /** Whether an event may have changed the result of the query. */
  readonly live?: (event: RotaEvent) => boolean;
  /** Whether it is not fetched by itself now: the user reads further down, and rows must not move. */
  readonly isHeld?: () => boolean;
  /** Applies events to the shown data at once. Returns the same object if nothing changes. */
  readonly patch?: (data: never, events: readonly RotaEvent[]) => unknown;
}

/** What a query reads. `isNext`: a further page, after the data that is there. */
export type Read<Data> = (context: {
  readonly signal: AbortSignal;
  readonly data: Data | undefined;
  readonly isNext: boolean;
}) => Promise<Data>;

export interface Observer<Data> {
  readonly read: Read<Data>;
  readonly isEnabled: boolean;
  readonly meta: QueryMeta | undefined;
  readonly keptMs?: number | undefined;
}

export interface FetchOptions {
  /** Begins anew if a fetch runs: that one began before the change that is to be seen. */
  readonly restart?: boolean;
  readonly isNext?: boolean;
}

const EMPTY = {
  data: undefined,
  error: null,
  dataUpdatedAt: 0,
  isFetching: false,
  isOfNextPage: false,
  isInvalidated: false,
} as const;

/** A fetch that runs. */
interface Running {
  readonly abort: AbortController;
  done: Promise<void>;
  /** Whether the data may have changed since it began: it is fetched once more. */
  again: boolean;
}

interface QueryParts {
  readonly key: QueryKey;
  readonly hash: string;
  readonly onError: (error: unknown) => void;
  /** Called when the query has not been shown for long. */
  readonly onUnused: () => void;
}

/** What the server responded to one question, shared by everything that shows it. */
export class Query<Data = unknown> {
  readonly key: QueryKey;
  readonly hash: string;
  state: QueryState<Data> = EMPTY;
  readonly #parts: QueryParts;
  readonly #observers = new Map<() => void, { readonly current: Observer<Data> }>();
  #running: Running | undefined;
  #last: Observer<Data> | undefined;
  #unused: ReturnType<typeof setTimeout> | undefined;

  constructor(parts: QueryParts) {
    this.#parts = parts;
    this.key = parts.key;
    this.hash = parts.hash;
    this.#dropLater();
  }

  get meta(): QueryMeta | undefined {
    return (this.#enabled() ?? this.#last)?.meta;
  }

  /** Whether it is on the screen. */
  isActive(): boolean {
    return this.#enabled() !== undefined;
  }

  isStale(staleMs: number): boolean {
    const { data, isInvalidated, dataUpdatedAt } = this.state;
    return data === undefined || isInvalidated || Date.now() - dataUpdatedAt >= staleMs;
  }

  subscribe(listener: () => void, observer: { readonly current: Observer<Data> }): () => void {
    clearTimeout(this.#unused);
    this.#observers.set(listener, observer);
    return () => {
      this.#last = observer.current;
      this.#observers.delete(listener);
      if (this.#observers.size > 0) return;
      this.#cancel();
      if (this.state.isFetching) this.#set({ isFetching: false });
      this.#dropLater();
    };
  }

  /** Never rejects: a failure is part of the state. */
  readonly fetch = ({ restart = false, isNext = false }: FetchOptions = {}): Promise<void> => {
    const observer = this.#enabled() ?? this.#observers.values().next().value?.current;
    if (observer === undefined) return Promise.resolve();
    if (this.#running !== undefined && (!restart || this.state.data === undefined)) {
      // The first fetch goes on, since there is nothing to show yet: on a busy server it would never come to its end.
      this.#running.again ||= restart && !isNext;
      return this.#running.done;
    }
    this.#cancel();
    const running: Running = { abort: new AbortController(), done: Promise.resolve(), again: false };
    this.#running = running;
    this.#set({
      isFetching: true,
      isOfNextPage: isNext,
      ...(this.state.data === undefined && { error: null }),
    });
    running.done = this.#run(observer.read, running, isNext);
    return running.done;
  };

  readonly refetch = (): Promise<void> => this.fetch({ restart: true });

  readonly fetchNextPage = (): Promise<void> => this.fetch({ restart: true, isNext: true });

  setData(data: Data, updatedAt = Date.now()): void {
    this.#set({ data: keepEqual(this.state.data, data), error: null, dataUpdatedAt: updatedAt });
  }

  /** The data may have changed, and is not fetched now. */
  outdate(): void {
    this.#set({ isInvalidated: true });
  }

  invalidate(): void {
    this.outdate();
    if (this.isActive()) void this.refetch();
  }

  reset(): void {
    this.#cancel();
    this.#set(EMPTY);
    if (this.isActive()) void this.fetch();
  }

  async #run(read: Read<Data>, running: Running, isNext: boolean): Promise<void> {
    const { signal } = running.abort;
    try {
      const data = await read({ signal, data: this.state.data, isNext });
      if (signal.aborted) return;
      this.#running = undefined;
      this.#set({
        data: keepEqual(this.state.data, data),
        error: null,
        dataUpdatedAt: Date.now(),
        isFetching: false,
        // The pages before a further one are those of before.
        isInvalidated: (isNext || running.again) && this.state.isInvalidated,
      });
      if (running.again) void this.fetch();
    } catch (error) {
      if (signal.aborted) return;
      this.#running = undefined;
      this.#set({ error: error as Error, isFetching: false });
      this.#parts.onError(error);
    }
  }

  #enabled(): Observer<Data> | undefined {
    for (const { current } of this.#observers.values()) if (current.isEnabled) return current;
    return undefined;
  }

  #cancel(): void {
    this.#running?.abort.abort();
    this.#running = undefined;
  }

  #dropLater(): void {
    const ms = this.#last?.keptMs ?? KEPT_MS;
    if (Number.isFinite(ms)) this.#unused = setTimeout(this.#parts.onUnused, ms);
  }

  #set(changes: Partial<QueryState<Data>>): void {
    this.state = { ...this.state, ...changes };
    for (const listener of [...this.#observers.keys()]) listener();
  }
}

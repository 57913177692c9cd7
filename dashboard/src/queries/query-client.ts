import { Query, type QueryKey } from "./query.ts";

export interface QueryFilter {
  /** Queries whose key begins with these parts. */
  readonly queryKey: QueryKey;
  /** Only the query with this key. */
  readonly exact?: boolean;
}

/** All that was read from the server in this tab. */
export class QueryClient {
  /** Called with each error of a query or a mutation. */
  readonly onError: (error: unknown) => void;
  readonly #queries = new Map<string, Query>();

  constructor(onError: (error: unknown) => void = () => {}) {
    this.onError = onError;
  }

  /** The query with this key, which is created if need be. */
  query<Data>(key: QueryKey): Query<Data> {
    const hash = hashOf(key);
    let query = this.#queries.get(hash);
    if (query === undefined) {
      const onUnused = () => void this.#queries.delete(hash);
      query = new Query({ key, hash, onError: this.onError, onUnused });
      this.#queries.set(hash, query);
    }
    return query as Query<Data>;
  }

  all(): Query[] {
    return [...this.#queries.values()];
  }

  setQueryData<Data>(key: QueryKey, change: Data | ((before: Data | undefined) => Data | undefined)): void {
    const query = this.query<Data>(key);
    const data = change instanceof Function ? change(query.state.data) : change;
    if (data !== undefined) query.setData(data);
  }

  /** Marks what may have changed; what is on the screen is fetched again. */
  invalidateQueries(filter: QueryFilter): void {
    for (const query of this.#matching(filter)) query.invalidate();
  }

  /** Forgets what was read; what is on the screen is fetched again. */
  resetQueries(filter: QueryFilter): void {
    for (const query of this.#matching(filter)) query.reset();
  }

  #matching({ queryKey, exact = false }: QueryFilter): Query[] {
    if (exact) return [this.query(queryKey)];
    return this.all().filter(({ key }) => hashOf(key.slice(0, queryKey.length)) === hashOf(queryKey));
  }
}

/** Objects with the same members are equal, whatever their order. */
function hashOf(key: QueryKey): string {
  return JSON.stringify(key, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
}

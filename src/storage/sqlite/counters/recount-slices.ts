import type { CounterFault, RecountParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { compare } from "./recount.ts";
import { TaskCensus } from "./task-census.ts";

/** Rows of one slice: a few milliseconds, during which nothing else runs in this thread. */
const SLICE_ROWS = 2_000;
/** Counters of one slice; each is compared with several numbers. */
const SLICE_COUNTERS = 200;

type Key = readonly (number | string)[];

/** A table that is read page by page, in the order of its key. */
export interface PagedTable<Row> {
  /** Takes the key of the last row read, then the size of the page. */
  readonly sql: string;
  /** Smaller than the key of every row. */
  readonly first: Key;
  readonly keyOf: (row: Row) => Key;
}

/** A recount under way: it runs in slices, between which other work runs, and collects faults. */
export class RecountSlices {
  readonly db: SqliteDatabase;
  readonly census: TaskCensus;
  readonly faults: CounterFault[] = [];
  /** Rows of one slice. */
  readonly limit: number;
  /** Counters of one slice. */
  readonly counters: number;
  readonly #onSlice: RecountParams["onSlice"];
  #rows = 0;
  #rowsTotal: number;

  constructor(db: SqliteDatabase, { limit = SLICE_ROWS, onSlice }: RecountParams) {
    this.db = db;
    this.limit = limit;
    this.counters = Math.min(limit, SLICE_COUNTERS);
    this.#onSlice = onSlice;
    this.#rowsTotal = estimateRows(db);
    this.census = new TaskCensus(db);
  }

  /** Calls `look` with each page. Before that it brings the counts of tasks up to date. */
  async eachPage<Row>(
    limit: number,
    { sql, first, keyOf }: PagedTable<Row>,
    look: (page: readonly Row[]) => void,
  ): Promise<void> {
    for (let key: Key | null = first; key !== null; ) {
      this.catchUp();
      const page: Row[] = this.db.prepare<Row>(sql).all(...key, limit);
      look(page);
      const last = page.at(-1);
      key = last === undefined || page.length < limit ? null : keyOf(last);
      await this.sliceDone(page.length);
    }
  }

  /** Checks rows for consistency with other rows: a row that is has 1 in the column `right`. */
  async checkRows<Row>(counter: string, table: PagedTable<Row>): Promise<void> {
    let rows = 0;
    let rightRows = 0;
    await this.eachPage<Row & { readonly right: 0 | 1 }>(this.limit, table, (page) => {
      rows += page.length;
      for (const { right } of page) rightRows += right;
    });
    this.compare(counter, rightRows, rows);
  }

  /** Counts what was added and changed since the last slice. */
  catchUp(): void {
    while (this.census.advance(this.limit) === this.limit);
  }

  compare(counter: string, stored: number | null, counted: number | null): void {
    this.faults.push(...compare(counter, stored, counted));
  }

  async sliceDone(rows: number): Promise<void> {
    this.#rows += rows;
    this.#rowsTotal = Math.max(this.#rowsTotal, this.#rows);
    await this.#onSlice?.({ rows: this.#rows, rowsTotal: this.#rowsTotal });
  }
}

/** By the counters, which may be wrong: only for the progress. */
function estimateRows(db: SqliteDatabase): number {
  const row = db
    .prepare<{ tasks: number; ready: number }>(
      `select (select coalesce(sum(tasks), 0) from tally) as tasks, (select coalesce(sum(ready), 0) from line) as ready`,
    )
    .get();
  return 2 * (row?.tasks ?? 0) + (row?.ready ?? 0);
}

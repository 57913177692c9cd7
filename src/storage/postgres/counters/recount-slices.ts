import type { CounterFault, RecountParams } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { type FaultRow, toFault } from "./recount.ts";

/** Rows per statement. Each statement has its own snapshot, and a long one keeps vacuum from cleaning up. */
const SLICE_ROWS = 10_000;
/** Counters that one statement compares or recounts. */
const SLICE_COUNTERS = 500;

/** Checks of one kind of thing, besides the counters that are compared with all tasks. */
export interface RecountChecks {
  /** Rows that must agree with each other, read a range at a time. */
  readonly rows?: readonly RowCheck[];
  /** Counters that cover few rows each, read a page at a time. */
  readonly pages?: readonly PageCheck[];
  /** Statements that return faults. They read agent queues or tasks in flight, never tasks that wait or have ended. */
  readonly whole?: readonly string[];
}

interface RowCheck {
  readonly name: string;
  /** Given the last key and a number of rows: how many it read, how many are right, and the key of the last. */
  readonly text: string;
  readonly first: readonly string[];
}

interface PageCheck {
  /** Given the last id and a limit: the ids after it. */
  readonly ids: string;
  /** Given ids: their faults, in one snapshot. */
  readonly faults: string;
}

/** One recount: it reads in slices and collects faults. */
export class RecountSlices {
  readonly faults: CounterFault[] = [];
  /** Rows per slice. */
  readonly rows: number;
  /** Counters per slice. */
  readonly counters: number;
  readonly #db: PostgresDatabase;
  readonly #params: RecountParams;
  #rowsDone = 0;
  #rowsTotal = 0;

  constructor(db: PostgresDatabase, params: RecountParams) {
    this.#db = db;
    this.#params = params;
    this.rows = params.limit ?? SLICE_ROWS;
    this.counters = Math.min(this.rows, SLICE_COUNTERS);
  }

  /** How many rows there are to read, as far as is known. */
  get rowsTotal(): number {
    return this.#rowsTotal;
  }

  expect(rows: number): void {
    this.#rowsTotal = rows;
  }

  /** Checks rows that must agree with each other, a range at a time. */
  async checkRows({ name, text, first }: RowCheck): Promise<void> {
    let stored = 0;
    let counted = 0;
    for (let key: readonly string[] | null = first; key !== null; ) {
      const [page]: RowsChecked[] = await this.query(text, [...key, this.rows]);
      const rows: number = Number(page?.rows ?? 0);
      counted += rows;
      stored += Number(page?.right_ones ?? 0);
      key = rows < this.rows ? null : (page?.last_key?.flat() ?? null);
      await this.sliceDone(rows);
    }
    this.compare(name, stored, counted);
  }

  /** Checks counters that cover few rows each, a page at a time. */
  async checkPages({ ids, faults }: PageCheck): Promise<void> {
    for (let after = "0", more = true; more; ) {
      const page = await this.query<{ id: string }>(ids, [after, this.counters]);
      if (page.length > 0) this.report(await this.query<FaultRow>(faults, [page.map(({ id }) => id)]));
      after = page.at(-1)?.id ?? after;
      more = page.length === this.counters;
      await this.sliceDone(page.length);
    }
  }

  /** Runs a statement that returns faults. */
  async checkWhole(text: string): Promise<void> {
    this.report(await this.query<FaultRow>(text, []));
    await this.sliceDone(1);
  }

  query<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#db.read<Row>({ text, values });
  }

  report(rows: readonly FaultRow[]): void {
    this.faults.push(...rows.map(toFault));
  }

  compare(counter: string, stored: number, counted: number): void {
    if (stored !== counted) this.faults.push({ counter, stored, counted });
  }

  async sliceDone(rows: number): Promise<void> {
    this.#rowsDone += rows;
    this.#rowsTotal = Math.max(this.#rowsTotal, this.#rowsDone);
    await this.#params.onSlice?.({ rows: this.#rowsDone, rowsTotal: this.#rowsTotal });
  }
}

interface RowsChecked {
  readonly rows: string;
  readonly right_ones: string;
  /** Nested where it comes from `array_agg` of arrays. */
  readonly last_key: readonly (string | readonly string[])[] | null;
}

import type { Transaction } from "./transaction.ts";

const ROWS_AT_ONCE = 10;

/** A statement that writes one row, and the same for ten rows. */
export interface RowStatement {
  readonly one: string;
  readonly ten: string;
}

/**
 * The statements for rows like `(?, ?, 'queued')`. `write` makes a statement of the list of rows. Write a value that is the same in all
 * rows into the statement: to pass a text takes a tenth of a microsecond.
 */
export function rowStatement(row: string, write: (rows: string) => string): RowStatement {
  return { one: write(row), ten: write(Array(ROWS_AT_ONCE).fill(row).join(", ")) };
}

/**
 * Rows of one transaction, ten of which are written by one statement. That takes two thirds of the time of ten statements. The rows
 * are in the tables after `write`: call it before anything reads them.
 */
export class RowBatch {
  readonly #tx: Transaction;
  readonly #statement: RowStatement;
  #rows: unknown[][] = [];

  constructor(tx: Transaction, statement: RowStatement) {
    this.#tx = tx;
    this.#statement = statement;
  }

  add(values: unknown[]): void {
    this.#rows.push(values);
    if (this.#rows.length < ROWS_AT_ONCE) return;
    this.#tx.prepare(this.#statement.ten).run(...this.#rows.flat());
    this.#rows = [];
  }

  write(): void {
    for (const values of this.#rows) this.#tx.prepare(this.#statement.one).run(...values);
    this.#rows = [];
  }
}

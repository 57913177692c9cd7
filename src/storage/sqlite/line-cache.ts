import type { Line } from "./ledger.ts";

/** Lines of more agents than this are not kept: they are read again when they are needed. */
const LINES_MAX = 20_000;

/**
 * The lines as they were committed last, so that a transaction need not read what the one before it wrote. One process
 * writes to the file, so that nothing here can be out of date.
 */
export class LineCache {
  readonly #lines = new Map<number, Line>();
  readonly #idsOfAgent = new Map<string, readonly number[]>();
  #changed: Line[] = [];

  get(id: number): Line | undefined {
    return this.#lines.get(id);
  }

  /** All lines of an agent; undefined when they have not been read. */
  ofAgent(name: string): Line[] | undefined {
    const ids = this.#idsOfAgent.get(name);
    const lines = ids?.flatMap((id) => this.#lines.get(id) ?? []);
    return lines?.length === ids?.length ? lines : undefined;
  }

  /** Lines that the transaction under way has written. */
  stage(lines: readonly Line[]): void {
    // One by one: there may be more lines than a call can have arguments.
    for (const line of lines) this.#changed.push(line);
  }

  /** All lines of an agent, as the transaction under way knows them. */
  stageAgent(name: string, lines: readonly Line[]): void {
    this.stage(lines);
    this.#idsOfAgent.set(
      name,
      lines.map(({ id }) => id),
    );
  }

  committed(): void {
    for (const line of this.#changed) this.#lines.set(line.id, line);
    this.#changed = [];
    if (this.#lines.size > LINES_MAX) this.clear();
  }

  /** Forgets everything: a transaction failed, or changed lines in another way. */
  clear(): void {
    this.#lines.clear();
    this.#idsOfAgent.clear();
    this.#changed = [];
  }
}

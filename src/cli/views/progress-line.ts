/** The terminal of a progress line. */
type Terminal = Pick<NodeJS.WriteStream, "columns" | "write">;

/** One line of a terminal that is overwritten, and cleared at the end. */
export class ProgressLine {
  readonly #terminal: Terminal;
  #isShown = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(text: string): void {
    this.#terminal.write(`\r\u001b[K${text.slice(0, Math.max(this.#terminal.columns - 1, 0))}`);
    this.#isShown = true;
  }

  clear(): void {
    if (this.#isShown) this.#terminal.write("\r\u001b[K");
    this.#isShown = false;
  }
}

import type { ReadStream, WriteStream } from "node:tty";

const OPEN = "\x1b[?1049h\x1b[?25l";
const CLOSE = "\x1b[?25h\x1b[?1049l";
/** A terminal that supports these shows no half-drawn frame. */
const BEGIN_FRAME = "\x1b[?2026h\x1b[H";
const END_FRAME = "\x1b[J\x1b[?2026l";
const TO_END_OF_LINE = "\x1b[K";

export interface ScreenParams {
  readonly stdout: WriteStream;
  readonly stdin: ReadStream;
  readonly onKey: (key: string) => void;
  readonly onResize: () => void;
}

/** Draws on the whole terminal, and restores it when closed. */
export class Screen {
  readonly #params: ScreenParams;
  readonly #onData = (keys: Buffer): void => {
    for (const key of keys.toString()) this.#params.onKey(key);
  };
  readonly #restore = (): void => void this.#params.stdout.write(CLOSE);
  #isOpen = false;

  constructor(params: ScreenParams) {
    this.#params = params;
  }

  get size(): { readonly width: number; readonly height: number } {
    const { columns, rows } = this.#params.stdout;
    return { width: columns, height: rows };
  }

  open(): void {
    const { stdin, stdout, onResize } = this.#params;
    this.#isOpen = true;
    stdout.write(OPEN);
    stdout.on("resize", onResize);
    // However the process ends, the terminal must stay usable.
    process.once("exit", this.#restore);
    if (!stdin.isTTY) return;
    stdin.setRawMode(true);
    stdin.on("data", this.#onData).resume();
  }

  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => line + TO_END_OF_LINE).join("\r\n");
    this.#params.stdout.write(BEGIN_FRAME + text + END_FRAME);
  }

  close(): void {
    if (!this.#isOpen) return;
    const { stdin, stdout, onResize } = this.#params;
    this.#isOpen = false;
    stdout.off("resize", onResize);
    process.off("exit", this.#restore);
    if (stdin.isTTY) {
      stdin.off("data", this.#onData).pause();
      stdin.setRawMode(false);
    }
    this.#restore();
  }
}

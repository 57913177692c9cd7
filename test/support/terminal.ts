import { EventEmitter } from "node:events";
import type { ReadStream, WriteStream } from "node:tty";

/** What stands in for a terminal. */
export class Terminal extends EventEmitter {
  readonly isTTY = true;
  columns = 80;
  rows = 24;
  written = "";
  isRaw = false;
  isFlowing = false;

  get streams(): { stdin: ReadStream; stdout: WriteStream } {
    return { stdin: this as unknown as ReadStream, stdout: this as unknown as WriteStream };
  }

  write(text: string): boolean {
    this.written += text;
    return true;
  }

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw;
    return this;
  }

  resume(): this {
    this.isFlowing = true;
    return this;
  }

  pause(): this {
    this.isFlowing = false;
    return this;
  }
}

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** A program of this folder in a process of its own, so that the event loop of one is not measured by another. */
export class Program {
  readonly #child: ChildProcess;
  readonly #name: string;

  constructor(name: string, orders: unknown) {
    this.#name = name;
    this.#child = fork(join(import.meta.dirname, name), [JSON.stringify(orders)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
  }

  /** The next thing that it says. */
  async receive<Said>(): Promise<Said> {
    const stop = new AbortController();
    const ended = once(this.#child, "close", { signal: stop.signal }).then(() => {
      throw new Error(`${this.#name} ended before it had said what it was asked for`);
    });
    ended.catch(() => {});
    try {
      const [said] = await Promise.race([once(this.#child, "message", { signal: stop.signal }), ended]);
      return said as Said;
    } finally {
      stop.abort();
    }
  }

  /** Lets it take its next step. */
  goOn(): void {
    this.#child.send("go on");
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

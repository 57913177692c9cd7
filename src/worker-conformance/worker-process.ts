import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** How much of the output of a worker is kept, to show why it failed. */
const OUTPUT_LENGTH_MAX = 4_000;

/** The worker under test: a program that runs as a group of its own. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = "";
  #problem: Error | null = null;

  constructor(command: readonly string[], environment: Readonly<Record<string, string | undefined>>) {
    const [file = "", ...args] = command;
    this.#child = spawn(file, args, {
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.on("error", (error) => {
      this.#problem = error;
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_LENGTH_MAX);
      });
    }
    this.#exited = once(this.#child, "exit").catch(() => undefined);
  }

  /** The end of what it wrote. */
  get output(): string {
    return this.#output.trim();
  }

  get hasExited(): boolean {
    return this.#problem !== null || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** How it ended: `exit code 0`, `killed by SIGKILL`. */
  get end(): string {
    if (this.#problem !== null) return `cannot be started: ${this.#problem.message}`;
    const { exitCode, signalCode } = this.#child;
    return signalCode === null ? `exit code ${exitCode}` : `killed by ${signalCode}`;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** To the program alone, as a service manager does. */
  terminate(): void {
    this.#child.kill("SIGTERM");
  }

  /** Ends the program and all processes of its group. */
  async kill(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // No process of the group is left.
    }
    if (!this.hasExited) await this.#exited;
  }
}

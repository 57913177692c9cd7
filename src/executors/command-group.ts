import { setTimeout } from "node:timers/promises";
import type { Clock } from "../model/clock.ts";

/** How long a program may take to end itself. */
const KILL_AFTER_MS = 5_000;
/** How often it is looked whether it has. Short enough that the number of its group cannot be another's by then. */
const LOOK_MS = 25;

/** All that have not ended. Programs belong to the process, whichever Rota in it started them. */
const living = new Set<CommandGroup>();

/**
 * A program and all that it starts, as long as they stay together. Whoever leaves the process by `process.exit`, or by an
 * exception, leaves none of them behind.
 */
export class CommandGroup {
  readonly #pid: number;
  readonly #clock: Clock;
  #ending: Promise<void> | null = null;

  /** `pid` is that of a program that was started as the leader of a group. */
  constructor(pid: number, clock: Clock) {
    this.#pid = pid;
    this.#clock = clock;
    if (living.size === 0) process.on("exit", killAll);
    living.add(this);
  }

  /** Resolves once it has ended, if it was told to; null: it was not. */
  get ending(): Promise<void> | null {
    return this.#ending;
  }

  /** Ends all that is left of it: asks first, and later does not ask. */
  end(): Promise<void> {
    this.#ending ??= this.#end().finally(() => {
      living.delete(this);
      if (living.size === 0) process.off("exit", killAll);
    });
    return this.#ending;
  }

  kill(): void {
    this.#send("SIGKILL");
  }

  async #end(): Promise<void> {
    if (!this.#send("SIGTERM")) return;
    let killed = false;
    const timer = this.#clock.setTimer(KILL_AFTER_MS, () => {
      killed = true;
      this.kill();
    });
    // Whether anybody is left is for the machine to say, so that it takes the time of the machine.
    while (!killed && this.#send(0)) await setTimeout(LOOK_MS);
    timer.cancel();
  }

  /** Whether there was anybody to send it to. */
  #send(signal: NodeJS.Signals | 0): boolean {
    try {
      // Windows has no groups: there it is the program alone.
      return process.kill(process.platform === "win32" ? this.#pid : -this.#pid, signal);
    } catch (error) {
      // Whoever may not be sent anything is there all the same.
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }
}

/** Resolves once every program has ended that was told to. */
export async function endingPrograms(): Promise<void> {
  await Promise.all([...living].map(({ ending }) => ending));
}

function killAll(): void {
  for (const group of living) group.kill();
}

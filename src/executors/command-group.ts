import { setTimeout } from "node:timers/promises";
import type { Clock } from "../model/clock.ts";
import { allOf, hasMembers } from "./command-members.ts";

/** How long a program may take to end after SIGTERM. */
const KILL_AFTER_MS = 5_000;
/** How often to check whether it has ended: most end at once. */
const LOOK_MS = { first: 5, max: 100 } as const;

/** All groups that have not ended. They belong to the process, whichever Rota in it started them. */
const living = new Set<CommandGroup>();

/**
 * A program and the processes that it starts, as long as they stay in its group. All of them are killed when this process ends by
 * `process.exit` or an exception.
 */
export class CommandGroup {
  readonly #pid: number;
  readonly #clock: Clock;
  #ending: Promise<void> | null = null;

  /** `pid`: a program that was started as the leader of a group. */
  constructor(pid: number, clock: Clock) {
    this.#pid = pid;
    this.#clock = clock;
    if (living.size === 0) process.on("exit", killAll);
    living.add(this);
  }

  /** Resolves once the group has ended. Null: `end` was not called. */
  get ending(): Promise<void> | null {
    return this.#ending;
  }

  /** Ends all processes of the group: with SIGTERM first, then with SIGKILL. */
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
    if (!hasMembers(this.#pid)) return;
    this.#send("SIGTERM");
    let killed = false;
    const timer = this.#clock.setTimer(KILL_AFTER_MS, () => {
      killed = true;
      this.kill();
    });
    // A real timer, not the clock: only the operating system knows whether a process is left.
    for (let waitMs: number = LOOK_MS.first; ; waitMs = Math.min(2 * waitMs, LOOK_MS.max)) {
      await setTimeout(waitMs);
      if (killed || !hasMembers(this.#pid)) break;
    }
    timer.cancel();
  }

  #send(signal: NodeJS.Signals): void {
    try {
      process.kill(allOf(this.#pid), signal);
    } catch {
      // No process is left, or none that this user may signal.
    }
  }
}

/** Resolves once every group whose end was requested has ended. */
export async function endingPrograms(): Promise<void> {
  await Promise.all([...living].map(({ ending }) => ending));
}

function killAll(): void {
  for (const group of living) group.kill();
}

import { setTimeout } from "node:timers/promises";
import type { Clock } from "../model/clock.ts";
import { allOf, hasMembers } from "./command-members.ts";

/** How long a program may take to end itself. */
const KILL_AFTER_MS = 5_000;
/** How long it takes to look again whether it has: most end at once. */
const LOOK_MS = { first: 5, max: 100 } as const;

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
    if (!hasMembers(this.#pid)) return;
    this.#send("SIGTERM");
    let killed = false;
    const timer = this.#clock.setTimer(KILL_AFTER_MS, () => {
      killed = true;
      this.kill();
    });
    // Whether anybody is left is for the machine to say, so that it takes the time of the machine.
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
      // Nobody is left, or nobody who may be told.
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

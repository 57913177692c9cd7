import { Durations } from "./durations.ts";

/** What the users saw. */
export class Tally {
  /** From sending a task to its acceptance. */
  readonly submit = new Durations();
  /** From sending a task until the agent gets it. */
  readonly pickUp = new Durations();
  /** From an event to its reader, by the clock of the machine that both are on. */
  readonly lag = new Durations();
  /** From asking for a page of tasks to having it. */
  readonly list = new Durations();

  /** Tasks that have ended since the last look, as a reader of events sees it. */
  ended = 0;
  /** Over all. */
  accepted = 0;
  events = 0;
  refused = 0;
  /** What should not have happened, and how often. */
  readonly surprises = new Map<string, number>();

  surprise(error: unknown): void {
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.surprises.set(said, (this.surprises.get(said) ?? 0) + 1);
  }
}

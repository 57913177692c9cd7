import type { Acknowledgement, Edit, Knock } from "./history.ts";

/** What clients know: what they were told, and what they asked for without being told. */
export class Ledger {
  readonly acknowledged: Acknowledgement[] = [];
  readonly retriesAsked: string[] = [];
  /** Schedules that somebody keeps changing. */
  readonly fickle: number[] = [];
  readonly resendsAsked: string[] = [];
  /** The actions on many tasks that were accepted. */
  readonly bulkIds: string[] = [];
  readonly edits: Edit[] = [];
  readonly knocks: Knock[] = [];
  /** How often nobody knows whether a request was carried out. */
  unanswered = 0;
  /** How often a request was refused for now. */
  refused = 0;
  readonly #markers = new Set<string>();

  readonly #prefix: string;

  /** What `prefix` says comes before every name that is given here. */
  constructor(prefix = "") {
    this.#prefix = prefix;
  }

  /** A name that nothing else in this run has. */
  marker(client: string): string {
    const marker = `${this.#prefix}${client}-${this.#markers.size}`;
    this.#markers.add(marker);
    return marker;
  }

  /** The ids of the tasks that clients know of, oldest first. */
  get accepted(): string[] {
    return this.acknowledged.flatMap((known) => (known.what === "task" ? [known.taskId] : []));
  }
}

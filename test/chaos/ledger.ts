import type { Acknowledgement, Edit, Knock } from "./history.ts";

/** What clients know: the responses that they got, and the requests that got none. */
export class Ledger {
  readonly acknowledged: Acknowledgement[] = [];
  readonly retriesAsked: string[] = [];
  /** Schedules that a client keeps changing. */
  readonly fickle: number[] = [];
  readonly resendsAsked: string[] = [];
  /** The actions on many tasks that were accepted. */
  readonly bulkIds: string[] = [];
  readonly edits: Edit[] = [];
  readonly knocks: Knock[] = [];
  /** How many requests have an unknown outcome. */
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

import { Client, type ClientDependencies } from "./client.ts";

const OVERLAPS = ["skip", "queue", "allow", "replace"] as const;

/** Makes schedules that are due every second. */
export class Planner extends Client {
  protected readonly pauseMs = 1_500;
  #made = 0;
  readonly #most: number;

  /** Each is due every second: more than a few would leave no room for anything else. */
  constructor(most: number, dependencies: ClientDependencies) {
    super(dependencies);
    this.#most = most;
  }

  protected async step(): Promise<void> {
    if (this.#made >= this.#most) return;
    const answered = await this.ask("/v1/schedules", {
      schedule: { kind: "every", everyMs: 1_000 },
      message: "tick",
      agent: "ticker",
      overlap: OVERLAPS[this.#made % OVERLAPS.length],
      timeout: 1_500,
      retry: { max_retries: 1, base_delay_ms: 100, max_delay_ms: 200 },
    });
    if (answered?.status !== 201) return;
    this.#made += 1;
    const { id: scheduleId, updated_at: at, next_fire_at: nextAt } = answered.body.scheduled_task;
    this.note({ what: "scheduled", scheduleId });
    this.ledger.edits.push({ deed: "due", scheduleId, at, nextAt, everySec: 1 });
  }
}

import { Client } from "./client.ts";

/** Each is due about every second: more would leave no room for anything else. */
const ALIVE_MAX = 3;
const MADE_MAX = 12;

/** When a schedule can be due, and how many seconds lie between its moments. */
const TIMES = [
  { schedule: { kind: "every", everyMs: 1_000 }, everySec: 1 },
  { schedule: "every 2 seconds", everySec: 2 },
  { schedule: { kind: "every", everyMs: 3_000 }, everySec: 3 },
  { schedule: { kind: "cron", expr: "*/2 * * * * *" }, everySec: 2 },
] as const;

/** A schedule as it must be, since no other client changes it. */
interface Kept {
  readonly id: number;
  everySec: number;
  paused: boolean;
}

/** Makes schedules, and changes, pauses, resumes, runs and deletes them while they fire. */
export class Editor extends Client {
  protected readonly pauseMs = 600;
  /** Those of which it knows what they are. */
  #kept: Kept[] = [];
  #made = 0;

  protected async step(): Promise<void> {
    if (this.#kept.length < ALIVE_MAX && this.#made < MADE_MAX) return this.#make();
    if (this.#kept.length === 0) return;
    const schedule = this.chance.pick(this.#kept);
    switch (this.chance.weighted({ change: 3, toggle: 6, run: 3, delete: 1 })) {
      case "change":
        return this.#change(schedule);
      case "toggle":
        return this.#toggle(schedule);
      case "run":
        return this.#run(schedule);
      case "delete":
        return this.#delete(schedule);
    }
  }

  async #make(): Promise<void> {
    const { schedule, everySec } = TIMES[0];
    const answered = await this.ask("/v1/schedules", {
      schedule,
      message: "tick",
      agent: "ticker",
      overlap: this.chance.pick(["skip", "queue", "allow", "replace"]),
      timeout: 1_500,
      retry: { max_retries: 1, base_delay_ms: 100, max_delay_ms: 200 },
    });
    if (answered?.status !== 201) return;
    this.#made += 1;
    const kept = { id: answered.body.scheduled_task.id, everySec, paused: false };
    this.#kept.push(kept);
    this.note({ what: "scheduled", scheduleId: kept.id });
    this.#noteDue(kept, answered.body);
  }

  /** A change without a response may still take effect later: from then on nothing is known of the schedule. */
  async #change(kept: Kept): Promise<void> {
    const { schedule, everySec } = this.chance.pick(TIMES);
    const answered = await this.ask(`/v1/schedules/${kept.id}`, { schedule, enabled: true }, "PATCH");
    if (answered === null) return this.#delete(kept);
    if (answered.status !== 200) return;
    Object.assign(kept, { everySec, paused: false });
    this.#noteDue(kept, answered.body);
  }

  /**
   * Pauses or resumes it. A pause that was not answered may still be carried out, at any time: from then on the schedule is
   * left as it is, which is what that request asks for, too. After a resume the client does not know since when it applies.
   */
  async #toggle(kept: Kept): Promise<void> {
    const paused = !kept.paused;
    const path = `/v1/schedules/${kept.id}`;
    const json = this.chance.oneIn(2) ? { enabled: !paused } : { status: paused ? "paused" : "active" };
    let answered = await this.ask(path, json, "PATCH");
    if (answered === null) {
      if (!paused) return this.#delete(kept);
      this.#forget(kept);
      answered = await this.insist(path, json, "PATCH");
    }
    if (answered.status !== 200) return;
    kept.paused = paused;
    if (paused) {
      const { updated_at: at } = answered.body.scheduled_task;
      this.ledger.edits.push({ deed: "paused", scheduleId: kept.id, at });
    } else this.#noteDue(kept, answered.body);
  }

  async #run({ id: scheduleId }: Kept): Promise<void> {
    const mode = this.chance.pick(["force", "force", "due"]);
    const answered = await this.ask(`/v1/schedules/${scheduleId}/run`, { mode });
    if (mode === "due") return;
    if (answered === null) this.ledger.edits.push({ deed: "ran", scheduleId, runId: null });
    else if (answered.status === 200 && answered.body.ran)
      this.ledger.edits.push({ deed: "ran", scheduleId, runId: answered.body.run_id });
  }

  /** Until it is known to be gone; then submits a task, so that the log shows what came after. */
  async #delete(kept: Kept): Promise<void> {
    this.#forget(kept);
    const answered = await this.insist(`/v1/schedules/${kept.id}`, undefined, "DELETE");
    if (![200, 404].includes(answered.status)) return;
    const marker = this.ledger.marker("deleted");
    const json = { payload: marker, metadata: { marker }, idempotencyKey: marker };
    const { status, body } = await this.insist("/tasks", json);
    if (status !== 202) return;
    this.note({ what: "task", taskId: body.taskId, marker });
    this.ledger.edits.push({ deed: "deleted", scheduleId: kept.id, before: body.taskId });
  }

  #forget(kept: Kept): void {
    this.#kept = this.#kept.filter((other) => other !== kept);
  }

  #noteDue({ id: scheduleId, everySec }: Kept, body: { scheduled_task: Record<string, number> }): void {
    const { updated_at: at = 0, next_fire_at: nextAt = 0 } = body.scheduled_task;
    this.ledger.edits.push({ deed: "due", scheduleId, at, nextAt, everySec });
  }
}

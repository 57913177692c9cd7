import { User } from "./user.ts";

/** Schedules that are due every second; more of them would leave little room for anything else. */
const SCHEDULES_MAX = 4;
const OVERLAPS = ["skip", "queue", "allow", "replace"] as const;

/** Makes schedules, changes them, and deletes them again. */
export class Planner extends User {
  protected readonly everyMs = 2_000;
  readonly #made: number[] = [];

  protected async step(): Promise<void> {
    const { schedules, runs } = this.rota;
    if (this.#made.length >= SCHEDULES_MAX) await schedules.delete(this.#made.shift() ?? 0);
    const { scheduled_task } = await schedules.create({
      schedule: { kind: "every", everyMs: 1_000 },
      message: "tick",
      agent: "ticker",
      overlap: this.chance.pick(OVERLAPS),
    });
    this.#made.push(scheduled_task.id);
    const some = this.chance.pick(this.#made);
    await schedules.update(some, { status: this.chance.oneIn(4) ? "paused" : "active" });
    if (this.chance.oneIn(3)) await schedules.run(some);
    await schedules.create({
      schedule: "in 1 minute",
      message: "once",
      agent: "ticker",
      delete_after_run: true,
    });
    await runs.list({ limit: 20 });
  }
}

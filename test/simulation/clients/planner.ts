import { Client } from "./client.ts";

const OVERLAPS = ["skip", "queue", "allow", "replace"] as const;
const CATCH_UPS = ["one", "all", "none"] as const;
/** Each is due every second: more would leave no room for anything else. */
const SCHEDULES_MAX = 2;

/** Makes schedules that are due every second, and asks for what is due. */
export class Planner extends Client {
  #made = 0;
  readonly #ids: number[] = [];

  protected step(): void {
    const [id] = this.chance.shuffle(this.#ids);
    if (id !== undefined && this.chance.oneIn(20))
      this.ask("run what is due", (rota) => rota.schedules.run(id, { mode: "due" }));
    if (this.#made >= SCHEDULES_MAX || !this.chance.oneIn(6)) return;
    this.#made += 1;
    const overlap = this.chance.pick(OVERLAPS);
    const input = {
      schedule: { kind: "every", everyMs: 1_000 },
      message: "tick",
      agent: "ticker",
      overlap,
      // Each run that may overlap others has a session of its own: after a jump of the clock there would be hundreds.
      catch_up: overlap === "allow" ? "one" : this.chance.pick(CATCH_UPS),
      timeout: 3_000,
      retry: { max_retries: 1, base_delay_ms: 100, max_delay_ms: 200 },
    } as const;
    this.ask(
      "make a schedule",
      (rota) => rota.schedules.create(input),
      ({ scheduled_task: { id: scheduleId } }) => {
        this.#ids.push(scheduleId);
        this.note({ what: "scheduled", scheduleId });
      },
    );
  }
}

import type { ScheduleChanges } from "../../../src/interface/schedules.ts";
import { RotaError } from "../../../src/model/errors.ts";
import { Client } from "./client.ts";

const OVERLAPS = ["skip", "queue", "replace"] as const;
/** Not all: with a clock that jumps there would be nothing else to do. */
const CATCH_UPS = ["one", "none"] as const;
/** What it does, and how often next to the others. */
const DEEDS = { make: 3, pause: 4, resume: 5, reword: 2, retime: 2, delete: 1 } as const;
const AT_ONCE_MAX = 2;
const IN_ALL_MAX = 5;

/** Makes schedules and cannot leave them alone: pauses, resumes, changes and deletes them while they fire. */
export class Editor extends Client {
  #made = 0;
  #ids: number[] = [];

  protected step(): void {
    const id = this.#ids.length === 0 ? undefined : this.chance.pick(this.#ids);
    const deed = this.chance.weighted(DEEDS);
    if (deed === "make") this.#make();
    else if (id !== undefined && deed === "delete") this.#delete(id);
    else if (id !== undefined && deed !== "delete") this.#change(id, deed, this.#changes()[deed]);
  }

  #changes(): Readonly<Record<"pause" | "resume" | "reword" | "retime", ScheduleChanges>> {
    return {
      pause: { enabled: false },
      resume: { enabled: true },
      reword: { message: "tock", overlap: this.chance.pick(OVERLAPS) },
      retime: { schedule: { kind: "every", everyMs: 1_000 * this.chance.between(1, 3) } },
    };
  }

  #make(): void {
    if (this.#ids.length >= AT_ONCE_MAX || this.#made >= IN_ALL_MAX) return;
    this.#made += 1;
    const input = {
      schedule: { kind: "every", everyMs: 1_000 },
      message: "tick",
      agent: "ticker",
      overlap: this.chance.pick(OVERLAPS),
      catch_up: this.chance.pick(CATCH_UPS),
      timeout: 3_000,
      retry: { max_retries: 1, base_delay_ms: 100, max_delay_ms: 200 },
    } as const;
    this.ask(
      "make a schedule to change",
      (rota) => rota.schedules.create(input),
      ({ scheduled_task: { id } }) => {
        this.ledger.fickle.push(id);
        this.#ids.push(id);
      },
    );
  }

  #change(id: number, deed: string, changes: ScheduleChanges): void {
    this.ask(`${deed} schedule ${id}`, (rota) => rota.schedules.update(id, changes));
  }

  /** Until it is known to be gone. */
  #delete(id: number): void {
    const isGone = () => {
      this.#ids = this.#ids.filter((other) => other !== id);
    };
    this.ask(
      `delete schedule ${id}`,
      (rota) => rota.schedules.delete(id),
      isGone,
      (error) => {
        if (error instanceof RotaError && error.code === "not_found") isGone();
      },
    );
  }
}

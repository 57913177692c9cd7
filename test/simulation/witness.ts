import type { ScheduleRecord, StorageSignal, TenantRecord } from "../../src/storage/storage.ts";
import type { History } from "../chaos/history.ts";

/** An operation of the storage, when it happened. */
interface Operation {
  readonly process: string;
  readonly operation: string;
  readonly params: unknown;
  readonly answer: unknown;
}

/** Sees the calls between processes and the storage, and reports contradictions. */
export class Witness {
  readonly #now: () => number;
  /** By process and token: when it first heard that the attempt holds nothing, as a place in the order of what agents saw. */
  readonly #fences = new Map<string, number>();
  /** By node: the process that declared it dead. */
  readonly #declaredDead = new Map<string, string>();

  /** By schedule or tenant: from which event on it was paused, gone or disabled, and whether it was. */
  readonly #courses = new Map<number | string, { readonly after: number; readonly stands: boolean }[]>();
  readonly #newestEvent: () => Promise<number>;

  /** `now`: the place in the order of what agents saw. */
  constructor({ now, newestEvent }: { now: () => number; newestEvent: () => Promise<number> }) {
    this.#now = now;
    this.#newestEvent = newestEvent;
  }

  received(process: string, signal: StorageSignal): void {
    if (signal.kind !== "fenced") return;
    for (const token of signal.tokens) {
      const key = `${process} ${token}`;
      if (!this.#fences.has(key)) this.#fences.set(key, this.#now());
    }
  }

  carriedOut({ process, operation, params, answer }: Operation): void {
    if (operation === "nodes.markDead" && answer === true)
      this.#declaredDead.set((params as { node: string }).node, process);
    if (answer === null) return;
    const { id } = (params ?? {}) as { id: number };
    if (operation === "tenants.setDisabled") void this.#note(id, (answer as TenantRecord).disabled);
    if (operation === "schedules.delete") void this.#note(id, true);
    if (operation === "schedules.update") void this.#note(id, (answer as ScheduleRecord).status !== "active");
  }

  /** Nothing else happens before the storage has answered. */
  async #note(id: number | string, stands: boolean): Promise<void> {
    const course = this.#courses.get(id) ?? [];
    this.#courses.set(id, course);
    course.push({ after: await this.#newestEvent(), stands });
  }

  #stood(id: number | string, seq: number): boolean {
    return this.#courses.get(id)?.findLast(({ after }) => after < seq)?.stands === true;
  }

  startedWhileDisabled(tenant: string, { events }: Pick<History, "events">): string[] {
    return events
      .filter(({ type, seq }) => type === "task.started" && this.#stood(tenant, seq))
      .map(({ taskId, seq }) => `${taskId} started (event ${seq}), and ${tenant} was disabled`);
  }

  /** Whether one of these tenants was enabled when the event with this number was written. */
  wasEnabled(tenants: readonly string[], seq: number): boolean {
    return tenants.some((tenant) => !this.#stood(tenant, seq));
  }

  /** Runs that fired while their schedule was paused, or gone. */
  firedWhileStill({ events }: History): string[] {
    return events
      .filter(({ type, scheduleId = 0, seq }) => type === "task.created" && this.#stood(scheduleId, seq))
      .map(({ taskId, scheduleId }) => `${taskId}: schedule ${scheduleId} fired, and stood still`);
  }

  /** Attempts that a process began although it had heard that they hold nothing any more. */
  begunAfterFence({ calls, events }: History): string[] {
    const tokens = new Map(
      events.flatMap(({ type, taskId, attempt, seq }) =>
        type === "task.started" ? [[`${taskId} ${attempt}`, seq]] : [],
      ),
    );
    return calls
      .filter(({ taskId, attempt, process, began }) => {
        const receivedAt = this.#fences.get(`${process} ${tokens.get(`${taskId} ${attempt}`)}`);
        return receivedAt !== undefined && began > receivedAt;
      })
      .map(({ taskId, attempt, process }) => `${taskId}: ${process} began attempt ${attempt} all the same`);
  }

  /** Attempts that had been answered, and that their own process then gave up for lost; `except` may do so. */
  forgotten({ calls, tasks }: History, except: readonly string[]): string[] {
    return calls
      .filter(({ taskId, attempt, process, answer }) => {
        const granted = tasks.get(taskId)?.attempts[attempt - 1];
        if (answer === null || except.includes(process) || granted?.outcome !== "lost") return false;
        return this.#declaredDead.get(granted.node) === process;
      })
      .map(({ taskId, attempt, process }) => `${taskId}: ${process} forgot the answer to attempt ${attempt}`);
  }
}

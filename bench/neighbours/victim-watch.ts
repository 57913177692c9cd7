import { type Called, isAccepted } from "./http-caller.ts";

/** What the victim saw, in milliseconds. What was still missing at the end counts with the time until then. */
export interface VictimReport {
  /** From sending a request to its whole response. */
  readonly submitMs: readonly number[];
  readonly listMs: readonly number[];
  /** From submitting a task to its agent being called. */
  readonly startMs: readonly number[];
  /** From a due time of the schedule to its agent being called. */
  readonly scheduleMs: readonly number[];
  /** From the end of a task to its callback. */
  readonly callbackMs: readonly number[];
  /** Requests that were refused, or had no response. */
  readonly refused: number;
  /** What the first of them got. */
  readonly refusal: string | null;
}

/** Of a victim that could not even begin, or did not get to the end. */
export function failedReport(reason: string): VictimReport {
  const none = { submitMs: [], listMs: [], startMs: [], scheduleMs: [], callbackMs: [] };
  return { ...none, refused: 1, refusal: reason };
}

export interface RunOfSchedule {
  /** In seconds since 1970. */
  readonly due_at: number;
  readonly queue_task_id: string | null;
}

interface Submitted {
  readonly at: number;
  readonly withCallback: boolean;
  answeredAt: number | null;
  accepted: boolean;
  startedAt: number | null;
  /** When the agent responded, which ends the task as far as the victim knows. */
  endedAt: number | null;
  callbackMs: number | null;
}

const SCHEDULE_STEP_MS = 2_000;

/** Milliseconds since 1970, with fractions. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}

/** Keeps what happens to the victim's requests, tasks, runs and callbacks. Times are those of `preciseNow`. */
export class VictimWatch {
  #begunAt = 0;
  #tasks = new Map<number, Submitted>();
  #lists: { at: number; answeredAt: number | null }[] = [];
  /** When the agent was called for the run, by the id of its task. */
  readonly #runs = new Map<string, number>();
  #refused = 0;
  #refusal: string | null = null;
  #number = 0;
  readonly #now: () => number;

  constructor(now: () => number = preciseNow) {
    this.#now = now;
  }

  /** Forgets requests from before. */
  begin(): void {
    this.#begunAt = this.#now();
    this.#tasks = new Map();
    this.#lists = [];
    this.#refused = 0;
    this.#refusal = null;
  }

  /** A task is being submitted. Its number travels in its payload. */
  submits(withCallback: boolean): { number: number; answered: (called: Called) => void } {
    const number = this.#number++;
    const task: Submitted = {
      at: this.#now(),
      withCallback,
      answeredAt: null,
      accepted: false,
      startedAt: null,
      endedAt: null,
      callbackMs: null,
    };
    this.#tasks.set(number, task);
    return {
      number,
      answered: (called) => {
        task.answeredAt = this.#now();
        task.accepted = isAccepted(called);
        if (this.#tasks.get(number) === task) this.#countRefusal(called);
      },
    };
  }

  /** A page is being listed; call what it returns with the response. */
  lists(): (called: Called) => void {
    const listed: { at: number; answeredAt: number | null } = { at: this.#now(), answeredAt: null };
    this.#lists.push(listed);
    return (called) => {
      listed.answeredAt = this.#now();
      if (this.#lists.includes(listed)) this.#countRefusal(called);
    };
  }

  started(number: number): void {
    const task = this.#tasks.get(number);
    if (task === undefined) return;
    task.startedAt ??= this.#now();
    task.endedAt ??= this.#now();
  }

  runStarted(taskId: string): void {
    if (!this.#runs.has(taskId)) this.#runs.set(taskId, this.#now());
  }

  calledBack(number: number, completedAt: number): void {
    const task = this.#tasks.get(number);
    // The end is rounded to milliseconds, possibly to a later one than this.
    if (task !== undefined) task.callbackMs ??= Math.max(0, this.#now() - completedAt);
  }

  /** Whether nothing is missing any more. */
  isSettled(): boolean {
    const tasks = [...this.#tasks.values()];
    return (
      this.#lists.every(({ answeredAt }) => answeredAt !== null) &&
      tasks.every(({ answeredAt }) => answeredAt !== null) &&
      tasks.every(({ accepted, startedAt }) => !accepted || startedAt !== null) &&
      tasks.every(
        ({ withCallback, endedAt, callbackMs }) => !withCallback || endedAt === null || callbackMs !== null,
      )
    );
  }

  report({
    runs,
    windowEndedAt,
    endedAt,
  }: {
    runs: readonly RunOfSchedule[];
    windowEndedAt: number;
    endedAt: number;
  }): VictimReport {
    const tasks = [...this.#tasks.values()];
    return {
      submitMs: tasks.map(({ at, answeredAt }) => (answeredAt ?? endedAt) - at),
      listMs: this.#lists.map(({ at, answeredAt }) => (answeredAt ?? endedAt) - at),
      startMs: tasks
        .filter(({ accepted }) => accepted)
        .map(({ at, startedAt }) => (startedAt ?? endedAt) - at),
      scheduleMs: this.#lateness(runs, windowEndedAt, endedAt),
      callbackMs: tasks.flatMap((task) =>
        task.withCallback && task.endedAt !== null ? [task.callbackMs ?? endedAt - task.endedAt] : [],
      ),
      refused: this.#refused,
      refusal: this.#refusal,
    };
  }

  /** Of each due time in the window. One that left no run, or whose run was skipped, has not come at all. */
  #lateness(runs: readonly RunOfSchedule[], windowEndedAt: number, endedAt: number): number[] {
    const taskOf = new Map(runs.map((run) => [run.due_at * 1_000, run.queue_task_id]));
    const late: number[] = [];
    const first = Math.ceil(this.#begunAt / SCHEDULE_STEP_MS) * SCHEDULE_STEP_MS;
    for (let dueAt = first; dueAt < windowEndedAt; dueAt += SCHEDULE_STEP_MS) {
      const calledAt = this.#runs.get(taskOf.get(dueAt) ?? "");
      late.push((calledAt ?? endedAt) - dueAt);
    }
    return late;
  }

  #countRefusal(called: Called): void {
    if (isAccepted(called)) return;
    this.#refused += 1;
    this.#refusal ??= called.status === 0 ? "no response" : `${called.status} ${called.body.slice(0, 300)}`;
  }
}

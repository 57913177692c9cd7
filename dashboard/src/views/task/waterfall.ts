import type { Attempt, Task } from "../../../../src/client/index.ts";
import { formatDuration } from "../../parts/format.ts";
import { niceDuration } from "../../parts/nice-scale.ts";
import type { Glyph } from "../../parts/state.tsx";
import { isEnded } from "../../parts/task-text.ts";

/** One phase of a task: a wait, an attempt or a back-off. */
export interface Stretch {
  readonly name: string;
  readonly glyph: Glyph;
  /** How it is drawn: a wait is hollow, a back-off hatched, a failure has a cut end, and an open phase an open one. */
  readonly bar: "wait" | "back" | "fail" | "ok" | "run" | "off";
  readonly from: number;
  readonly to: number;
  /** It has not ended. */
  readonly isOpen: boolean;
  readonly note?: string;
}

const BARS: Readonly<Record<NonNullable<Attempt["outcome"]>, readonly [Stretch["bar"], Glyph]>> = {
  done: ["ok", "done"],
  failed: ["fail", "failed"],
  lost: ["fail", "failed"],
  cancelled: ["off", "cancelled"],
  interrupted: ["off", "cancelled"],
  preempted: ["off", "skipped"],
};

/**
 * Waits, attempts and back-offs of a task, in order. `since`: when the task entered its state, from `explain`. Before that it
 * waited for its dependencies or its due time.
 */
export function stretchesOf(task: Task, now: number, since?: string): Stretch[] {
  const created = Date.parse(task.createdAt);
  const attempts = task.attempts ?? [];
  const stretches: Stretch[] = [];
  let at = created;
  const wait = (to: number, isOpen: boolean, before: Attempt | undefined) => {
    if (to - at < 1 && !isOpen) return;
    stretches.push(...waitBetween(task, { from: at, to, isOpen, before, since }));
  };
  for (const [index, attempt] of attempts.entries()) {
    const started = Date.parse(attempt.startedAt);
    wait(started, false, attempts[index - 1]);
    const [bar, glyph] = attempt.outcome === null ? (["run", "running"] as const) : BARS[attempt.outcome];
    at = attempt.endedAt === null ? now : Date.parse(attempt.endedAt);
    stretches.push({
      name: `Attempt ${attempt.number}`,
      glyph,
      bar,
      from: started,
      to: at,
      isOpen: attempt.endedAt === null,
      ...(attempt.error === null ? {} : { note: attempt.error }),
    });
  }
  const isRunning = attempts.at(-1)?.endedAt === null;
  if (isRunning) return stretches;
  if (!isEnded(task.state)) wait(now, true, attempts.at(-1));
  else if (attempts.length === 0 && task.completedAt !== undefined)
    wait(Date.parse(task.completedAt), false, undefined);
  return stretches;
}

/** About as many marks have room on a phone. */
const TICKS = 5;
/** A mark this far to the right, in percent, would be cut. */
const LAST_TICK = 86;

/** The marks of an axis of `length` milliseconds, at round times: positions in percent, and texts. */
export function ticksOf(length: number): { readonly at: number; readonly text: string }[] {
  const step = niceDuration(length / TICKS);
  const count = Math.floor((length * LAST_TICK) / 100 / step);
  return Array.from({ length: count }, (_, n) => ({
    at: (100 * step * (n + 1)) / length,
    text: `+${tickText(step * (n + 1), step)}`,
  }));
}

/** `2s` rather than `2.0s`, `1m` rather than `1m 00s`; `150ms` rather than `0.1s` where marks are closer than that. */
function tickText(ms: number, step: number): string {
  if (step < 100) return `${ms}ms`;
  return formatDuration(ms).replace(/\.0(?=s$)| 0?0[smh]$/, "");
}

interface Gap {
  readonly from: number;
  readonly to: number;
  readonly isOpen: boolean;
  readonly before: Attempt | undefined;
  readonly since: string | undefined;
}

function waitBetween(task: Task, { from, to, isOpen, before, since }: Gap): Stretch[] {
  const wait = { bar: "wait", isOpen } as const;
  if (before?.outcome === "failed" || before?.outcome === "lost") {
    return [{ name: "Back-off", glyph: "retry", bar: "back", from, to, isOpen }];
  }
  if (before !== undefined) return [{ name: "Queued again", glyph: "queued", ...wait, from, to }];
  if (isOpen && task.state === "waiting_dependency") {
    return [{ name: "Waiting for tasks", glyph: "waiting_dependency", ...wait, from, to }];
  }
  if (isOpen && task.state === "delayed")
    return [{ name: "Not due yet", glyph: "delayed", ...wait, from, to }];
  const ready = since === undefined || !isOpen ? firstDue(task) : Date.parse(since);
  if (ready === undefined || ready <= from || ready >= to) {
    return [{ name: "Queued", glyph: "queued", ...wait, from, to }];
  }
  const isDependent = (task.dependsOn?.length ?? 0) > 0;
  return [
    {
      name: isDependent ? "Waiting for tasks" : "Not due yet",
      glyph: isDependent ? "waiting_dependency" : "delayed",
      bar: "wait",
      isOpen: false,
      from,
      to: ready,
    },
    { name: "Queued", glyph: "queued", ...wait, from: ready, to },
  ];
}

/** When a task without dependencies could first start. */
function firstDue({ runAt, dependsOn, retryCount }: Task): number | undefined {
  return runAt === undefined || dependsOn !== undefined || retryCount > 0 ? undefined : Date.parse(runAt);
}

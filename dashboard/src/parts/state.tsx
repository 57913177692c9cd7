import type { TaskState } from "../../../src/client/index.ts";

/** Everything with a glyph: the states of a task, and others. */
export type Glyph = TaskState | "retry" | "waiting_approval" | "missed" | "paused" | "skipped";

const WORDS: Readonly<Record<Glyph, string>> = {
  queued: "Queued",
  delayed: "Delayed",
  waiting_dependency: "Waiting for a task",
  waiting_approval: "Waiting for approval",
  retry: "Waiting to retry",
  assigned: "Assigned",
  running: "Running",
  done: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
  rejected: "Rejected",
  missed: "Missed",
  paused: "Paused",
  skipped: "Skipped",
};

export function stateWord(state: Glyph): string {
  return WORDS[state] ?? state;
}

/** A failed task that waits for its retry is `delayed` too, but has a glyph of its own. */
export function glyphOf(task: { readonly state: TaskState; readonly retryCount: number }): Glyph {
  return task.state === "delayed" && task.retryCount > 0 ? "retry" : task.state;
}

/** Shape and colour of a state. `label` is for screen readers. Without it, the caller shows a word beside the glyph. */
export function StateGlyph({ state, label }: { readonly state: Glyph; readonly label?: string }) {
  const name = label === undefined ? { "aria-hidden": true as const } : { role: "img", "aria-label": label };
  return (
    <svg className={`st st-${state}`} {...name}>
      <use href={`#s-${state}`} />
    </svg>
  );
}

const TONE: Readonly<Partial<Record<Glyph, string>>> = {
  failed: "state-failed",
  missed: "state-failed",
  waiting_approval: "state-ask",
  retry: "state-ask",
  running: "state-run",
  assigned: "state-run",
};

/** Shape, colour and word. */
export function StateBadge({ state }: { readonly state: Glyph }) {
  return (
    <span className={`state ${TONE[state] ?? ""}`}>
      <StateGlyph state={state} />
      {stateWord(state)}
    </span>
  );
}

/** The colour of a text about a state. Undefined: no special colour. */
export function stateTone(state: Glyph): string | undefined {
  return TONE[state];
}

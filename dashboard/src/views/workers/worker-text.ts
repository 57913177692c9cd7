import type { WorkerInfo } from "../../../../src/client/index.ts";
import type { Glyph } from "../../parts/state.tsx";

interface ShownState {
  readonly glyph: Glyph;
  readonly word: string;
  /** What that means for its tasks. Empty: the word says it. */
  readonly note: string;
}

const STATES: Readonly<Record<WorkerInfo["state"], ShownState>> = {
  idle: { glyph: "queued", word: "Idle", note: "" },
  busy: { glyph: "running", word: "Busy", note: "" },
  draining: { glyph: "paused", word: "Draining", note: "It finishes what it runs, and takes no more." },
  not_polling: {
    glyph: "retry",
    word: "Not polling",
    note: "It sends heartbeats, but has asked for no tasks for 30 seconds although it has free slots.",
  },
  lost: { glyph: "missed", word: "Lost", note: "It sends no heartbeats: its tasks go back to the queue." },
};

export function shownState({ state }: WorkerInfo): ShownState {
  // A server of another version may have further states.
  return STATES[state] ?? { glyph: "queued", word: state, note: "" };
}

/** Whether an attempt with this holder ran in a worker. Others ran in a node. */
export function isWorkerId(holder: string): boolean {
  return holder.startsWith("wrk_");
}

/** Stands for all agents that workers may run. */
const ANY = "*";

export function serves({ agents }: WorkerInfo, agentId: string): boolean {
  return agents.includes(agentId) || agents.includes(ANY);
}

export function agentsText({ agents }: WorkerInfo): string {
  return agents.includes(ANY) ? "all that workers may run" : agents.join(", ");
}

/** What it is written in, and the version of its code. */
export function versionText({ version, runtime }: WorkerInfo): string {
  return [version, runtime].filter((each) => each !== null).join(", ") || "–";
}

export function labelsText({ labels }: WorkerInfo): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

import type { RotaOptions } from "../../src/interface/options.ts";
import type { SessionChanges } from "../../src/interface/sessions.ts";
import type { Limits } from "../chaos/history.ts";
import type { Climate } from "./climate.ts";
import { Receiver } from "./receiver.ts";

/** Small, so that they are reached all the time. */
const PER_NODE = 2;
const PER_AGENT = 3;
const AGENTS = { worker: 2, talker: 4 } as const;

/** The agents that every process has. */
export const AGENT_IDS = [
  "worker",
  "helper",
  "talker",
  "ticker",
  "holder",
  "rusher",
  "guest",
  "stranger",
] as const;

/** Agents that only every other process has. */
export const LOCAL_AGENTS = ["even", "odd"] as const;
export type LocalAgent = (typeof LOCAL_AGENTS)[number];

/** Which of them the process with this number has. */
export function localAgentOf(number: number): LocalAgent {
  return LOCAL_AGENTS[number % 2] as LocalAgent;
}

/** Tenants besides the one that is always there, by the agent that works for them alone, and what bounds them. */
export const GUESTS = {
  guest: { maxInflight: 1, maxQueued: 5 },
  stranger: { maxInflight: 2, maxQueued: 20 },
} as const;

/** Sessions that clients talk in, and how each differs from the others. */
export const SESSIONS: Readonly<Record<string, SessionChanges>> = {
  "in-order": { cap: 20 },
  "side-by-side": { maxConcurrent: 2 },
  hasty: { debounceMs: 60, cap: 4, drop: "new" },
  forgetful: { debounceMs: 0, cap: 2, drop: "old" },
};

export function limitsIn({ lanesTotal }: Climate): Limits {
  const lane = { perNode: PER_NODE, total: lanesTotal ?? Number.POSITIVE_INFINITY };
  return {
    lanes: { tasks: { ...lane, perAgent: PER_AGENT }, main: lane, cron: lane, quick: lane },
    agents: AGENTS,
    sessions: { "side-by-side": 2 },
  };
}

/** How a process is configured. */
export function optionsIn({ lanesTotal }: Climate): RotaOptions {
  const lane = { concurrency: PER_NODE, ...(lanesTotal === null ? {} : { total: lanesTotal }) };
  return {
    scheduler: {
      workerCount: PER_NODE,
      maxInflight: lanesTotal ?? 1_000,
      maxPerAgentInflight: PER_AGENT,
    },
    lanes: { main: lane, cron: lane, quick: lane },
    sessions: { debounceMs: 0 },
    webhooks: { allow: [Receiver.host] },
    agents: { worker: { maxInflight: AGENTS.worker }, talker: { maxInflight: AGENTS.talker } },
  };
}

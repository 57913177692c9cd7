import type { Limits, TenantBounds } from "./history.ts";

/** Small, so that they are reached all the time. */
export const LIMITS: Limits = {
  lanes: {
    tasks: { perNode: 3, total: 5, perAgent: 4 },
    main: { perNode: 3, total: 5 },
    cron: { perNode: 3, total: 4 },
    subagent: { perNode: 2, total: 3 },
  },
  agents: { worker: 3, talker: 4, ponderer: 3, remote: 3 },
  sessions: { "side-by-side": 2 },
};

/** Sessions that clients talk in, and how each differs from the others. */
export const SESSIONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "in-order": { cap: 20 },
  "side-by-side": { maxConcurrent: 2 },
  hasty: { debounceMs: 60, cap: 4, drop: "new" },
};

/** What the callbacks of the tenant `default` are signed with. */
export const WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** The tenants that share a Rota, and their bounds; the first is always there. */
export const TENANTS: Readonly<Record<string, TenantBounds>> = {
  default: {},
  acme: { maxInflight: 2, maxQueued: 4 },
  globex: { maxInflight: 1, maxQueued: 3 },
};

/** The name of the node with this number. */
export const nodeName = (index: number) => `node-${index}`;

/** The agent whose tasks only workers run, how many workers there are, and how many tasks each runs at once. */
export const REMOTE_AGENT = "remote";
export const WORKERS = 3;
export const WORKER_SLOTS = 2;

/** The name of the worker with this number. */
export const workerName = (index: number) => `worker-${index}`;

/** The agent that only the node with this number has. */
export const localAgent = (index: number) => `local-${index}`;

/**
 * The nodes that have an agent, of agents that not all have: each has one of its own, and `helper` is missing on the last of
 * several.
 */
export function homesOf(nodes: number): Readonly<Record<string, readonly string[]>> {
  const names = Array.from({ length: nodes }, (_, index) => nodeName(index));
  return {
    ...Object.fromEntries(names.map((name, index) => [localAgent(index), [name]])),
    helper: nodes > 1 ? names.slice(0, -1) : names,
    [REMOTE_AGENT]: Array.from({ length: WORKERS }, (_, index) => workerName(index)),
  };
}

/** The configuration of one of several nodes; its agents are at `programUrl`. */
export function configFor(
  programUrl: string,
  { name, nodes }: { readonly name: string; readonly nodes: number },
): object {
  const homes = Object.entries(homesOf(nodes));
  const ownAgents = homes.filter(([, home]) => home.includes(name)).map(([agent]) => agent);
  const { lanes, agents } = LIMITS;
  const executor = { type: "http", url: programUrl };
  const { tasks, main, cron, subagent } = lanes;
  return {
    scheduler: {
      workerCount: tasks?.perNode,
      maxInflight: tasks?.total,
      maxPerAgentInflight: tasks?.perAgent,
    },
    lanes: {
      main: { concurrency: main?.perNode, total: main?.total },
      cron: { concurrency: cron?.perNode, total: cron?.total },
      subagent: { concurrency: subagent?.perNode, total: subagent?.total },
    },
    sessions: { debounceMs: 0 },
    webhooks: { allow: ["127.0.0.1", "localhost"] },
    // Messages cannot set a timeout, and some calls never get a response.
    timeouts: { defaultMs: 2_000 },
    agents: {
      worker: { executor, maxInflight: agents["worker"] },
      ...Object.fromEntries(ownAgents.map((agent) => [agent, { executor }])),
      talker: { executor, maxInflight: agents["talker"] },
      ticker: { executor },
      ponderer: { executor, lane: "subagent", maxInflight: agents["ponderer"] },
      [REMOTE_AGENT]: { executor: { type: "worker" }, maxInflight: agents[REMOTE_AGENT] },
    },
  };
}

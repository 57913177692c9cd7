import { DEFAULT_AGENT } from "../../src/model/agent.ts";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import type { Abilities, ClaimedTask, Storage } from "../../src/storage/storage.ts";
import { LOCAL_AGENTS } from "./settings.ts";

/** Storages that break a promise now and then, by what they do. */
export const SPOILERS: Readonly<Record<string, (storage: Storage) => Storage>> = {
  "cancels nothing": (storage) => {
    const { tasks } = storage;
    const isTime = every(3);
    const cancel: typeof tasks.cancel = async (params) => {
      if (!isTime()) return tasks.cancel(params);
      const place = { token: null, agent: "worker", lane: "tasks" };
      return params.ids.map((id) => ({ id, found: true, was: null, ...place }));
    };
    return { ...storage, tasks: { ...tasks, cancel } };
  },

  "hands a task out twice": (storage) => {
    const { tasks } = storage;
    const isTime = every(20);
    let last: ClaimedTask[] = [];
    const finishAndClaim: typeof tasks.finishAndClaim = async (params) => {
      const answer = await tasks.finishAndClaim(params);
      if (isTime()) return { ...answer, claimed: [...answer.claimed, ...last] };
      last = [...answer.claimed];
      return answer;
    };
    return { ...storage, tasks: { ...tasks, finishAndClaim } };
  },

  "forgets a task that it accepted": (storage) => {
    const { tasks } = storage;
    const isTime = every(15);
    const insert: typeof tasks.insert = async (params) => {
      const [task] = params.tasks;
      // What is submitted to find the end of the log is spared.
      const isSpared = task?.agent === DEFAULT_AGENT || params.tasks.length > 1;
      if (task === undefined || isSpared || !isTime()) return tasks.insert(params);
      const unknown = { seq: 0, position: 1, createdAt: await storage.now(), rejection: null, repeats: null };
      return [{ ...unknown, id: task.id, state: "queued", runAt: null, deadline: null }];
    };
    return { ...storage, tasks: { ...tasks, insert } };
  },

  "passes over a task of many": (storage) => {
    const { bulks } = storage;
    const step: typeof bulks.step = (params) => bulks.step({ ...params, ids: params.ids.slice(1) });
    return { ...storage, bulks: { ...bulks, step } };
  },

  "counts what happened twice": (storage) => {
    const { rollups } = storage;
    const read: typeof rollups.read = async (params) => {
      const { rows, next } = await rollups.read(params);
      return { rows: rows.map((row) => ({ ...row, started: 2 * row.started })), next };
    };
    return { ...storage, rollups: { ...rollups, read } };
  },

  "hands a node what it cannot execute": (storage) => {
    const { nodes } = storage;
    const register: typeof nodes.register = ({ abilities, ...params }) =>
      nodes.register(abilities === undefined ? params : { ...params, abilities: claimingAll(abilities) });
    const setAbilities: typeof nodes.setAbilities = async () => {};
    return { ...storage, nodes: { ...nodes, register, setAbilities } };
  },

  "runs tasks with one key side by side": (storage) => {
    const { tasks } = storage;
    const MARK = " of ";
    const insert: typeof tasks.insert = (params) =>
      tasks.insert({
        ...params,
        tasks: params.tasks.map((task) => ({
          ...task,
          concurrencyKey: task.concurrencyKey && `${task.concurrencyKey}${MARK}${task.id}`,
        })),
      });
    const list: typeof tasks.list = async (params) => {
      const page = await tasks.list(params);
      const shown = page.tasks.map((task) => ({
        ...task,
        concurrencyKey: task.concurrencyKey?.split(MARK)[0] ?? null,
      }));
      return { ...page, tasks: shown };
    };
    return { ...storage, tasks: { ...tasks, insert, list } };
  },

  "leaves out an event": (storage) => {
    const { events } = storage;
    const isTime = every(40);
    const read: typeof events.read = async (params) => {
      const page = await events.read(params);
      // Of one alone it would be asked for ever.
      return page.events.length > 1 && isTime() ? { ...page, events: page.events.slice(1) } : page;
    };
    return { ...storage, events: { ...events, read } };
  },

  "lets a node be declared dead that is not": (storage) => {
    const { nodes } = storage;
    const list: typeof nodes.list = async () =>
      (await nodes.list()).map((record) => ({ ...record, beat: 0 }));
    const markDead: typeof nodes.markDead = async ({ node }) => {
      const beat = (await nodes.list()).find((other) => other.node === node)?.beat ?? 0;
      return nodes.markDead({ node, beat });
    };
    return { ...storage, nodes: { ...nodes, list, markDead } };
  },

  "takes a callback for made that was not": (storage) => {
    const { deliveries } = storage;
    const isTime = every(5);
    const claim: typeof deliveries.claim = async (params) => {
      const answer = await deliveries.claim(params);
      const { claimed } = answer;
      if (claimed.length === 0 || !isTime()) return answer;
      const made = { status: "delivered", dueAt: null, responseStatus: 200, error: null } as const;
      await deliveries.settle({
        tries: claimed.map(({ delivery: { seq, tries } }) => ({ seq, tries, ...made })),
      });
      return { ...answer, claimed: [] };
    };
    return { ...storage, deliveries: { ...deliveries, claim } };
  },

  "shows a tenant what is another's": (storage) => {
    const { tasks } = storage;
    const get: typeof tasks.get = async ({ tenant, id }) =>
      (await tasks.get({ tenant, id })) ?? tasks.get({ tenant: DEFAULT_TENANT, id });
    return { ...storage, tasks: { ...tasks, get } };
  },

  "sets a tenant no bounds": (storage) => {
    const { tenants } = storage;
    const create: typeof tenants.create = (params) =>
      tenants.create({ ...params, limits: { ...params.limits, maxInflight: null } });
    return { ...storage, tenants: { ...tenants, create } };
  },

  "lets a schedule fire that is paused": (storage) => {
    const { schedules } = storage;
    const update: typeof schedules.update = async (params) => {
      const { nextFireAt: _, ...changes } = params.changes;
      const isPause = changes.status === "paused";
      const updated = await schedules.update(isPause ? { ...params, changes: {} } : params);
      return updated === null || !isPause ? updated : { ...updated, status: "paused" };
    };
    return { ...storage, schedules: { ...schedules, update } };
  },

  "passes over a moment": (storage) => {
    const { schedules } = storage;
    const isTime = every(10);
    const fire: typeof schedules.fire = ({ fires }) =>
      schedules.fire({ fires: fires.map((each) => (isTime() ? { ...each, runs: [] } : each)) });
    return { ...storage, schedules: { ...schedules, fire } };
  },
};

/** As if a node had every agent that only some have. */
function claimingAll({ agents, kinds }: Abilities): Abilities {
  return { agents: new Map([...agents, ...LOCAL_AGENTS.map((agent) => [agent, true] as const)]), kinds };
}

/** True once in so many times. */
function every(times: number): () => boolean {
  let count = 0;
  return () => ++count % times === 0;
}

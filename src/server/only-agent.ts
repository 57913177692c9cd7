import type { Agents } from "../interface/agents.ts";
import type { Notifications } from "../interface/notifications.ts";
import type { LocalTenant } from "../interface/rota.ts";
import type { Runs, Schedules } from "../interface/schedules.ts";
import type { Sessions } from "../interface/sessions.ts";
import type { LocalTasks } from "../interface/tasks.ts";
import type { BatchInput } from "../model/batch.ts";
import { RotaError } from "../model/errors.ts";
import { isObject } from "../model/field-checks.ts";
import type { SubmitInput } from "../model/submit-input.ts";
import { isTaskId } from "../model/task-id.ts";

/**
 * What a key of the role `agent` sees of its tenant: the work of its own agent. What is another's is not there; who names
 * another is refused. What the role may not do at all is refused by the routes, and here once more.
 */
export function onlyAgent(rota: LocalTenant, agent: string): LocalTenant {
  return {
    tasks: ownTasks(rota, agent),
    sessions: ownSessions(rota, agent),
    schedules: ownSchedules(rota, agent),
    runs: ownRuns(rota, agent),
    writs: { carryOut: async (input) => rota.writs.carryOut(forAgent(input, agent, "agent")) },
    agents: ownAgents(rota, agent),
    lanes: { list: refuse, put: refuse, clear: refuse },
    webhooks: { deliveries: refuse, get: refuse, resend: refuse },
    events(options = {}) {
      if (options.agentId !== undefined && options.agentId !== agent) throw notFound("agent");
      return rota.events({ ...options, agentId: agent });
    },
    notifications: (options) => ownNotifications(rota.notifications(options), agent),
    stats: refuse,
    metrics: refuse,
  };
}

function ownTasks(rota: LocalTenant, agent: string): LocalTasks {
  const { tasks, sessions } = rota;

  async function get(taskId: string) {
    const task = await tasks.get(taskId);
    if (task.agentId !== agent) throw notFound("task");
    return task;
  }

  /** The results of tasks that are waited for are handed on, and who joins a conversation holds up what is said in it. */
  async function checkNeighbours(input: unknown): Promise<void> {
    if (!isObject(input)) return;
    const { dependsOn, sessionKey } = input;
    if (typeof sessionKey === "string") await checkSession(sessions, sessionKey, agent);
    for (const name of Array.isArray(dependsOn) ? dependsOn : []) {
      if (typeof name !== "string" || !isTaskId(name)) continue;
      const parent = await tasks.get(name).catch(passOverMissing);
      if (parent !== undefined && parent.agentId !== agent) throw notFound("task");
    }
  }

  return {
    get,
    async submit(input) {
      const own = forAgent(input, agent, "agentId");
      await checkNeighbours(own);
      return tasks.submit(own);
    },
    async submitBatch(input) {
      const own = batchForAgent(input, agent);
      for (const task of Array.isArray(own?.tasks) ? own.tasks : []) await checkNeighbours(task);
      return tasks.submitBatch(own);
    },
    async getBatch(batchId) {
      const batch = await tasks.getBatch(batchId);
      if (batch.tasks.some(({ agentId }) => agentId !== agent)) throw notFound("batch");
      return batch;
    },
    async explain(taskId) {
      await get(taskId);
      return tasks.explain(taskId);
    },
    async list(filter = {}) {
      const own = await tasks.list({ ...filter, agentId: agent });
      const isOther = filter.agentId !== undefined && filter.agentId !== agent;
      return isOther ? { tasks: [], count: 0, nextCursor: null } : own;
    },
    async wait(taskId, options) {
      await get(taskId);
      return tasks.wait(taskId, options);
    },
    // Not by a route of its own: what a message began goes with whoever sent it, if they asked for that.
    async cancel(taskId) {
      await get(taskId);
      return tasks.cancel(taskId);
    },
    submitMany: refuse,
    cancelBatch: refuse,
    retry: refuse,
    counts: refuse,
  };
}

function ownSessions({ sessions }: LocalTenant, agent: string): Sessions {
  async function get(key: string) {
    const session = await sessions.get(key);
    if (session.agentId !== agent) throw notFound("session");
    return session;
  }

  return {
    get,
    async list(page) {
      const { sessions: all, nextCursor } = await sessions.list(page);
      const own = all.filter(({ agentId }) => agentId === agent);
      return { sessions: own, count: own.length, nextCursor };
    },
    async send(key, input) {
      const own = forAgent(input, agent, "agentId");
      // What is said can stop and interrupt what was said before.
      await checkSession(sessions, key, agent);
      return sessions.send(key, own);
    },
    ask: refuse,
    stop: refuse,
    stopAll: refuse,
    reset: refuse,
    update: refuse,
  };
}

/** A conversation that nobody has begun is anybody's. */
async function checkSession(sessions: Sessions, key: string, agent: string): Promise<void> {
  const session = await sessions.get(key).catch(passOverMissing);
  if (session !== undefined && session.agentId !== agent) throw notFound("session");
}

function ownSchedules({ schedules }: LocalTenant, agent: string): Schedules {
  async function get(id: number) {
    const schedule = await schedules.get(id);
    if (schedule.agent_id !== agent) throw notFound("schedule");
    return schedule;
  }

  return {
    get,
    async list(filter) {
      const own = (await schedules.list(filter)).schedules.filter(({ agent_id }) => agent_id === agent);
      return { schedules: own, count: own.length };
    },
    async runs(id, page) {
      await get(id);
      return schedules.runs(id, page);
    },
    preview: (input) => schedules.preview(input),
    create: refuse,
    update: refuse,
    delete: refuse,
    run: refuse,
    status: refuse,
  };
}

function ownRuns({ runs }: LocalTenant, agent: string): Runs {
  return {
    async get(id) {
      const run = await runs.get(id);
      if (run.agent_id !== agent) throw notFound("run");
      return run;
    },
    async list(filter) {
      const page = await runs.list(filter);
      const own = page.runs.filter(({ agent_id }) => agent_id === agent);
      return { ...page, runs: own, count: own.length };
    },
  };
}

function ownAgents({ agents }: LocalTenant, agent: string): Agents {
  return {
    async get(id) {
      if (id !== agent) throw notFound("agent");
      return agents.get(id);
    },
    async list() {
      const own = (await agents.list()).agents.filter(({ id }) => id === agent);
      return { agents: own, count: own.length };
    },
    create: refuse,
    update: refuse,
    delete: refuse,
  };
}

function ownNotifications(all: Notifications, agent: string): Notifications {
  return {
    get ready() {
      return all.ready;
    },
    get position() {
      return all.position;
    },
    async next() {
      for (;;) {
        const next = await all.next();
        if (next.done || next.value.agent_id === agent) return next;
      }
    },
    return: async () => (await all.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** What was handed in, for this agent: left out, it is meant. What is no object is refused as it is. */
function forAgent<Input>(input: Input, agent: string, field: "agentId" | "agent"): Input {
  if (!isObject(input)) return input;
  checkAgent(input[field], agent);
  return { ...input, [field]: agent };
}

function batchForAgent(input: BatchInput, agent: string): BatchInput {
  if (!isObject(input) || !Array.isArray(input.tasks)) return input;
  checkAgent(input.agentId, agent);
  return {
    ...input,
    agentId: agent,
    tasks: input.tasks.map((task: SubmitInput) => forAgent(task, agent, "agentId")),
  };
}

function checkAgent(named: unknown, agent: string): void {
  if (named === undefined || named === agent) return;
  throw new RotaError("forbidden", `this API key is for the agent "${agent}" alone: name that one, or none`);
}

function passOverMissing(error: unknown): undefined {
  if (!(error instanceof RotaError) || error.code !== "not_found") throw error;
}

async function refuse(): Promise<never> {
  throw new RotaError("forbidden", "a key of the role `agent` may not do this");
}

/** In the words of whoever has nothing of that name. */
function notFound(noun: string): RotaError {
  return new RotaError("not_found", `${noun} not found`);
}

import { setImmediate } from "node:timers/promises";
import type { Agents } from "../interface/agents.ts";
import type { Notifications } from "../interface/notifications.ts";
import type { LocalTenant } from "../interface/rota.ts";
import type { RunFilter, RunPage, Runs, Schedules } from "../interface/schedules.ts";
import type { Session, SessionMessage, Sessions } from "../interface/sessions.ts";
import type { LocalTasks, TaskFilter } from "../interface/tasks.ts";
import { toAgentId } from "../model/agent.ts";
import type { BatchInput } from "../model/batch.ts";
import { RotaError } from "../model/errors.ts";
import { atIndex, checkTasks } from "../model/input/batch-input.ts";
import { invalidField, isObject } from "../model/input/field-checks.ts";
import { stopWordIn } from "../model/input/session-input.ts";
import type { SubmitInput } from "../model/input/submit-input.ts";
import { parseDependsOn } from "../model/input/task-input.ts";
import { isTaskId } from "../model/task-id.ts";
import { isTerminal, TASK_STATES } from "../model/task-state.ts";
import { keepOwn } from "../model/text/own-json.ts";

/** How many tasks one request may depend on in all: each of them is read. */
const PARENTS_MAX = 1_000;
/** The default size of a page. */
const PAGE = 100;
/** How many pages, which also contain items of other agents, are read to fill one page. */
const READS_MAX = 20;
const OPEN_STATES = TASK_STATES.filter((state) => !isTerminal(state));

/**
 * The part of a tenant that a key of the role `agent` can use: the work of its own agent. Objects of other agents are
 * `not_found`, and input that names another agent is `forbidden`. Routes refuse what the role may not do; this refuses it again.
 */
export function onlyAgent(rota: LocalTenant, agent: string): LocalTenant {
  return {
    tasks: ownTasks(rota, agent),
    sessions: ownSessions(rota, agent),
    schedules: ownSchedules(rota, agent),
    runs: ownRuns(rota, agent),
    writs: {
      async carryOut(input) {
        const own = forAgent(input, agent, "agent");
        const key: unknown = isObject(own) ? own.session_key : undefined;
        if (typeof key === "string") await checkSession(rota.sessions, key, agent);
        return rota.writs.carryOut(own);
      },
    },
    agents: ownAgents(rota, agent),
    bulks: { preview: refuse, start: refuse, get: refuse, abort: refuse },
    lanes: { list: refuse, put: refuse, clear: refuse },
    webhooks: { deliveries: refuse, get: refuse, resend: refuse },
    events(options = {}) {
      if (options.agentId !== undefined && toAgentId(options.agentId) !== agent) throw notFound("agent");
      return rota.events({ ...options, agentId: agent });
    },
    notifications: (options) => ownNotifications(rota.notifications(options), agent),
    eventPage: refuse,
    waiting: refuse,
    stats: refuse,
    statsSeries: refuse,
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

  /** Whether the filter names another agent. Then the list is empty. */
  function isOther({ agentId }: TaskFilter): boolean {
    return agentId !== undefined && toAgentId(agentId) !== agent;
  }

  /**
   * A task receives the results of its dependencies, and a task in a session delays the messages behind it. So both must belong
   * to this agent. Each is read once, and at most as many as a request may name.
   */
  async function checkNeighbours(inputs: readonly unknown[], parents: readonly string[]): Promise<void> {
    const keys = inputs.map((input) => (isObject(input) ? input["sessionKey"] : undefined));
    for (const key of new Set(keys)) if (typeof key === "string") await checkSession(sessions, key, agent);
    const ids = [...new Set(parents.filter(isTaskId))];
    if (ids.length > PARENTS_MAX) throw tooManyParents(ids.length);
    for (const [place, id] of ids.entries()) {
      // Lets other requests run in between: each task may be large.
      if (place % 10 === 9) await setImmediate();
      const parent = await tasks.get(id).catch(passOverMissing);
      if (parent !== undefined && parent.agentId !== agent) throw notFound("task");
    }
  }

  /** Hides which task an idempotency key was used for, if that is another agent's. */
  async function hideOthers(error: unknown): Promise<never> {
    const isConflict = error instanceof RotaError && error.code === "idempotency_conflict";
    const taskId = isConflict ? error.details?.["taskId"] : undefined;
    if (typeof taskId !== "string") throw error;
    if ((await tasks.get(taskId).catch(passOverMissing))?.agentId === agent) throw error;
    throw new RotaError(
      "idempotency_conflict",
      "`idempotencyKey` was used within 24 hours for another request: take a new key",
      { details: { field: "idempotencyKey" } },
    );
  }

  return {
    get,
    async submit(input) {
      const own = forAgent(input, agent, "agentId");
      await checkNeighbours([own], isObject(own) ? parseDependsOn(own) : []);
      return tasks.submit(own).catch(hideOthers);
    },
    async submitAgain(taskId, input) {
      await get(taskId);
      const own = input === undefined ? undefined : forAgent(input, agent, "agentId");
      if (own !== undefined) await checkNeighbours([own], isObject(own) ? parseDependsOn(own) : []);
      return tasks.submitAgain(taskId, own).catch(hideOthers);
    },
    async submitBatch(input) {
      const own = batchForAgent(input, agent);
      if (isObject(own)) await checkNeighbours(checkTasks(own.tasks), parentsIn(own.tasks));
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
    async logs(taskId, filter) {
      await get(taskId);
      return tasks.logs(taskId, filter);
    },
    async list(filter = {}, options) {
      const own = await tasks.list({ ...filter, agentId: agent }, options);
      return isOther(filter) ? { tasks: [], count: 0, nextCursor: null } : own;
    },
    async listRows(filter = {}, options) {
      const own = await tasks.listRows({ ...filter, agentId: agent }, options);
      return isOther(filter) ? { tasks: [], count: 0, nextCursor: null } : own;
    },
    async wait(taskId, options) {
      await get(taskId);
      return tasks.wait(taskId, options);
    },
    // No route cancels a single task for this role. `cancelOnDisconnect` of a message does.
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

function parentsIn(inputs: readonly unknown[]): string[] {
  return inputs.flatMap((input, index) => {
    try {
      return isObject(input) ? parseDependsOn(input) : [];
    } catch (error) {
      throw atIndex(error, index);
    }
  });
}

function tooManyParents(count: number): RotaError {
  return invalidField(
    "dependsOn",
    `\`dependsOn\` names ${count} tasks in all, and may name ${PARENTS_MAX} with a key of the role \`agent\``,
  );
}

function ownSessions({ sessions, tasks }: LocalTenant, agent: string): Sessions {
  async function get(key: string) {
    const session = await sessions.get(key);
    if (session.agentId !== agent) throw notFound("session");
    return session;
  }

  /**
   * A message can replace tasks of other agents: in mode `interrupt`, or in a full session with `drop` `old`. Then it is refused.
   */
  async function checkAlone(session: Session, { mode }: SessionMessage): Promise<void> {
    const { key: sessionKey, running, queued, cap, drop } = session;
    // Over HTTP null counts as absent.
    const replaces =
      (mode ?? session.mode) === "interrupt" ? running + queued > 0 : drop === "old" && queued >= cap;
    if (!replaces) return;
    const { found, next } = await fillPage(
      { limit: 1 },
      async (part) => {
        const { tasks: items, nextCursor } = await tasks.list({
          ...part,
          sessionKey,
          state: OPEN_STATES,
          limit: PAGE,
        });
        return { items, next: nextCursor };
      },
      ({ agentId }) => agentId !== agent,
    );
    if (found.length > 0 || next !== null) throw notFound("session");
  }

  return {
    get,
    async list(page = {}) {
      const { found, next } = await fillPage(
        page,
        async (part) => {
          const { sessions: items, nextCursor } = await sessions.list(part);
          return { items, next: nextCursor };
        },
        ({ agentId }) => agentId === agent,
      );
      return { sessions: found, count: found.length, nextCursor: next };
    },
    async send(key, input) {
      const own = forAgent(input, agent, "agentId");
      if (typeof own?.message === "string" && stopWordIn(own.message) !== null) return refuse();
      const session = await checkSession(sessions, key, agent);
      if (session !== undefined) await checkAlone(session, own);
      // A new session has nothing to interrupt, except a message that another agent sends at the same time.
      else if (own?.mode === "interrupt") return sessions.send(key, { ...own, mode: "followup" });
      return sessions.send(key, own);
    },
    ask: refuse,
    stop: refuse,
    stopAll: refuse,
    reset: refuse,
    update: refuse,
    delete: refuse,
  };
}

/** Any agent may begin a session that does not exist yet. */
async function checkSession(sessions: Sessions, key: string, agent: string): Promise<Session | undefined> {
  const session = await sessions.get(key).catch(passOverMissing);
  if (session !== undefined && session.agentId !== agent) throw notFound("session");
  return session;
}

function ownSchedules({ schedules }: LocalTenant, agent: string): Schedules {
  async function get(id: number) {
    const schedule = await schedules.get(id);
    if (schedule.agent_id !== agent) throw notFound("schedule");
    return schedule;
  }

  return {
    get,
    async list(filter = {}) {
      const own = await schedules.list({ ...filter, agent });
      const isOther = filter.agent !== undefined && toAgentId(filter.agent) !== agent;
      return isOther ? { schedules: [], count: 0, next_cursor: null } : own;
    },
    async runs(id, filter) {
      await get(id);
      return ownRunPage((part) => schedules.runs(id, part), agent, filter);
    },
    preview: (input) => schedules.preview(input),
    create: refuse,
    update: refuse,
    delete: refuse,
    run: refuse,
    status: refuse,
    upcoming: refuse,
  };
}

function ownRuns({ runs }: LocalTenant, agent: string): Runs {
  return {
    async get(id) {
      const run = await runs.get(id);
      if (run.agent_id !== agent) throw notFound("run");
      return run;
    },
    list: (filter) => ownRunPage((part) => runs.list(part), agent, filter),
  };
}

/** Filters each run: the schedule may have belonged to another agent before. */
async function ownRunPage(
  list: (filter: RunFilter) => Promise<RunPage>,
  agent: string,
  filter: RunFilter = {},
): Promise<RunPage> {
  const { found, next } = await fillPage(
    filter,
    async (part) => {
      const { runs: items, next_cursor } = await list(part);
      return { items, next: next_cursor };
    },
    ({ agent_id }) => agent_id === agent,
  );
  return { runs: found, count: found.length, next_cursor: next };
}

/**
 * Fills a page with the wanted items. If they are rare, the page ends before it is full, so that one request does not read
 * everything that other agents have. The cursor continues from there.
 */
async function fillPage<Item, Filter extends { readonly limit?: number; readonly cursor?: string }>(
  filter: Filter,
  read: (filter: Filter) => Promise<{ items: readonly Item[]; next: string | null }>,
  isWanted: (item: Item) => boolean,
): Promise<{ found: Item[]; next: string | null }> {
  const found: Item[] = [];
  let part = filter;
  for (let reads = 1; ; reads += 1) {
    const { items, next } = await read(part);
    found.push(...items.filter(isWanted));
    const limit = (filter.limit ?? PAGE) - found.length;
    if (next === null || limit <= 0 || reads === READS_MAX) return { found, next };
    part = { ...filter, limit, cursor: next };
  }
}

function ownAgents({ agents }: LocalTenant, agent: string): Agents {
  return {
    async get(id) {
      if (toAgentId(id) !== agent) throw notFound("agent");
      return agents.get(id);
    },
    async list(page) {
      // Checks the input as for other roles, though one agent never has a second page.
      await agents.list({ ...page, limit: page?.limit ?? 1 });
      const own = await agents.get(agent).then((info) => [info], noneIfNotFound);
      return { agents: own, count: own.length, nextCursor: null };
    },
    create: refuse,
    update: refuse,
    delete: refuse,
  };
}

function noneIfNotFound(error: unknown): [] {
  if (error instanceof RotaError && error.code === "not_found") return [];
  throw error;
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

/** Input with the agent of the key filled in. What is not an object is passed on, and refused later. */
function forAgent<Input>(input: Input, agent: string, field: "agentId" | "agent"): Input {
  if (!isObject(input)) return input;
  checkAgent(input[field], agent);
  return keepOwn(input, { ...input, [field]: agent });
}

function batchForAgent(input: BatchInput, agent: string): BatchInput {
  if (!isObject(input) || !Array.isArray(input.tasks)) return input;
  checkAgent(input.agentId, agent);
  return keepOwn(input, {
    ...input,
    agentId: agent,
    tasks: input.tasks.map((task: SubmitInput) => forAgent(task, agent, "agentId")),
  });
}

function checkAgent(named: unknown, agent: string): void {
  if (named === undefined || named === null || toAgentId(named) === agent) return;
  throw new RotaError("forbidden", `this API key is for the agent "${agent}" alone: name that one, or none`);
}

function passOverMissing(error: unknown): undefined {
  if (!(error instanceof RotaError) || error.code !== "not_found") throw error;
}

async function refuse(): Promise<never> {
  throw new RotaError(
    "forbidden",
    "the role `agent` may not do this: use a key with the role `operator`, `tenant-admin` or `admin`",
  );
}

/** The same error as for something that does not exist. */
function notFound(noun: string): RotaError {
  return new RotaError("not_found", `${noun} not found`);
}

/** Tasks that have the same values in all columns that counters depend on, and how many there are. */
export interface TaskGroup {
  readonly agentQueue: number;
  readonly tenant: string;
  readonly state: string;
  readonly ended: boolean;
  /** Its batch, its session or its concurrency key holds it back. */
  readonly parked: boolean;
  /** Admission does not count it. */
  readonly exempt: boolean;
  readonly isMessage: boolean;
  /** Null for tasks that have ended. */
  readonly batch: string | null;
  readonly session: number | null;
  readonly inSession: boolean;
  /** Negative: subtracts tasks that were counted before. */
  readonly tasks: number;
}

/** The tasks of one agent queue. */
export interface AgentQueueTasks {
  /** Ended ones included. */
  tasks: number;
  /** Delayed, or waiting for a dependency. */
  early: number;
  parked: number;
  /** Queued and not parked: ready, or held by an attempt. */
  queued: number;
  exempt: number;
}

export interface BatchTasks {
  open: number;
  queued: number;
  parked: number;
}

export interface SessionTasks {
  inside: number;
  open: number;
  messages: number;
}

/**
 * The value that each counter should have, added up from groups of rows of `task`. Only open tasks are counted by batch and
 * session, so that the memory grows only with the number of agent queues, open batches and open sessions.
 */
export class TaskCounts {
  readonly agentQueues = new Map<number, AgentQueueTasks>();
  readonly batches = new Map<string, BatchTasks>();
  readonly sessions = new Map<number, SessionTasks>();
  readonly #tally = new Map<string, Map<string, number>>();

  add(group: TaskGroup): void {
    this.#addToTally(group);
    this.#addToAgentQueue(group);
    if (group.batch !== null) this.#addToBatch(group.batch, group);
    if (group.session !== null) this.#addToSession(group.session, group);
  }

  ofAgentQueue(agentQueue: number): Readonly<AgentQueueTasks> {
    return this.agentQueues.get(agentQueue) ?? NO_AGENT_QUEUE;
  }

  ofBatch(batch: string): Readonly<BatchTasks> {
    return this.batches.get(batch) ?? NO_BATCH;
  }

  ofSession(session: number): Readonly<SessionTasks> {
    return this.sessions.get(session) ?? NO_SESSION;
  }

  tally(): { tenant: string; state: string; tasks: number }[] {
    return [...this.#tally].flatMap(([tenant, states]) =>
      [...states].map(([state, tasks]) => ({ tenant, state, tasks })),
    );
  }

  inState(tenant: string, state: string): number {
    return this.#tally.get(tenant)?.get(state) ?? 0;
  }

  #addToTally({ tenant, state, tasks }: TaskGroup): void {
    const states = this.#tally.get(tenant) ?? new Map<string, number>();
    states.set(state, (states.get(state) ?? 0) + tasks);
    this.#tally.set(tenant, states);
  }

  #addToAgentQueue({ agentQueue, state, ended, parked, exempt, tasks }: TaskGroup): void {
    const counts = this.agentQueues.get(agentQueue) ?? { ...NO_AGENT_QUEUE };
    this.agentQueues.set(agentQueue, counts);
    counts.tasks += tasks;
    if (ended) return;
    if (parked) counts.parked += tasks;
    else if (state === "queued") counts.queued += tasks;
    else counts.early += tasks;
    if (exempt) counts.exempt += tasks;
  }

  #addToBatch(batch: string, { state, ended, parked, tasks }: TaskGroup): void {
    const counts = this.batches.get(batch) ?? { ...NO_BATCH };
    if (!ended) counts.open += tasks;
    if (parked) counts.parked += tasks;
    else if (state === "queued") counts.queued += tasks;
    if (counts.open === 0 && counts.queued === 0 && counts.parked === 0) this.batches.delete(batch);
    else this.batches.set(batch, counts);
  }

  #addToSession(session: number, { ended, inSession, isMessage, tasks }: TaskGroup): void {
    const counts = this.sessions.get(session) ?? { ...NO_SESSION };
    if (inSession) counts.inside += tasks;
    if (!ended) counts.open += tasks;
    if (!ended && isMessage) counts.messages += tasks;
    if (counts.inside === 0 && counts.open === 0) this.sessions.delete(session);
    else this.sessions.set(session, counts);
  }
}

const NO_AGENT_QUEUE: AgentQueueTasks = { tasks: 0, early: 0, parked: 0, queued: 0, exempt: 0 };
const NO_BATCH: BatchTasks = { open: 0, queued: 0, parked: 0 };
const NO_SESSION: SessionTasks = { inside: 0, open: 0, messages: 0 };

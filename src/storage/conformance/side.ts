import type { TaskRecord } from "../../model/task-record.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import type {
  Abilities,
  DeliveryRecord,
  RunRecord,
  ScheduleName,
  ScheduleRecord,
  SessionRecord,
  Storage,
  StoredEvent,
  StoredNotification,
} from "../storage.ts";
import { LANES, NODES, type Pick, TENANTS } from "./commands.ts";
import type { SteppedClock } from "./connection/clock.ts";
import { lookAtRollups } from "./log/rollups.ts";

/** So few slots that critical tasks often find none free. */
const SLOTS = { tasks: 2, main: 1 };

interface Claim {
  readonly seq: number;
  readonly token: number;
}

/**
 * One of the two storages that a property test compares, with what it has returned so far. Numbers may have gaps on one side and
 * not on the other, so results are made comparable: tokens become indexes into the list of claims, and tasks are known by their
 * ids, whose order `list` and the events show.
 */
export class Side {
  readonly storage: Storage;
  readonly clock: SteppedClock;
  /** The current names of the nodes. */
  readonly nodes: string[] = [];
  readonly crashed: string[] = [];
  readonly tasks: { tenant: string; id: string; keyed: boolean }[] = [];
  readonly claims: Claim[] = [];
  /** Deliveries that were claimed. */
  readonly tries: { readonly seq: number; readonly tries: number; readonly heldUntil: number }[] = [];
  /** Every schedule and every run there ever was, in the order of creation. */
  readonly schedules: ScheduleName[] = [];
  readonly runs: number[] = [];
  /** How many tasks runs have created. */
  made = 0;
  /** Whether there are many tenants. */
  hasManyTenants = false;
  /** How many batches were submitted. */
  batches = 0;
  /** The hashes of the tokens of all attempts that workers got. */
  readonly hashes: string[] = [];
  /** How many exchanges of workers there were. */
  exchanges = 0;
  readonly #eventsSeen: number[] = [];
  readonly #read: number[] = [];

  readonly #nodesDiffer: boolean;
  readonly #abilities: (Abilities | undefined)[] = [];

  private constructor(storage: Storage, clock: SteppedClock, nodesDiffer: boolean) {
    this.storage = storage;
    this.clock = clock;
    this.#nodesDiffer = nodesDiffer;
  }

  /** Creates the lanes and registers the nodes that commands refer to. */
  static async start(
    storage: Storage,
    clock: SteppedClock,
    { nodesDiffer }: { nodesDiffer: boolean },
  ): Promise<Side> {
    const side = new Side(storage, clock, nodesDiffer);
    const bounds = {
      total: null,
      perAgent: null,
      perTenant: null,
      strategy: "fair-fifo",
      agingMs: 0,
    } as const;
    await storage.lanes.configure({ lanes: LANES.map((name) => ({ name, ...bounds })) });
    for (let node = 0; node < NODES; node += 1) await side.startNode(node);
    return side;
  }

  async startNode(node: number): Promise<void> {
    const name = `node-${node}-${this.crashed.length}`;
    this.nodes[node] = name;
    const abilities = this.#abilities[node];
    await this.storage.nodes.register({
      node: name,
      slots: SLOTS,
      ...(abilities === undefined ? {} : { abilities }),
    });
  }

  /** If nodes may not differ, all of them change. */
  async setAbilities(changed: number, abilities: Abilities): Promise<void> {
    for (const [index, node] of this.nodes.entries()) {
      if (this.#nodesDiffer && index !== changed) continue;
      this.#abilities[index] = abilities;
      await this.storage.nodes.setAbilities({ node, abilities });
    }
  }

  /** The index of the attempt with this token, among all that were claimed. */
  claimOf(token: number): number {
    return this.claims.findIndex((claim) => claim.token === token);
  }

  addSchedule({ tenant, id }: ScheduleName): void {
    if (!this.schedules.some((schedule) => schedule.id === id)) this.schedules.push({ tenant, id });
  }

  chooseSchedule(pick: number): ScheduleName {
    return choose(this.schedules, pick) ?? { tenant: "acme", id: 1_000_000 };
  }

  #indexOf(schedule: number | null): number | null {
    return schedule === null ? null : this.schedules.findIndex(({ id }) => id === schedule);
  }

  comparableSchedule({ id, lastRunId, ...schedule }: ScheduleRecord) {
    return { ...schedule, id: this.#indexOf(id), lastRunId: lastRunId && this.runs.indexOf(lastRunId) };
  }

  #comparableRun({ id, scheduleId, ...run }: RunRecord) {
    return { ...run, id: this.runs.indexOf(id), scheduleId: this.#indexOf(scheduleId) };
  }

  #comparableNotification({ seq: _seq, ...notification }: StoredNotification) {
    if (notification.worker !== undefined) return notification;
    const { scheduleId, run } = notification;
    const comparable = run && { ...run, id: this.runs.indexOf(run.id) };
    return { ...notification, scheduleId: this.#indexOf(scheduleId), run: comparable };
  }

  comparableTask({ seq: _seq, schedule, ...task }: TaskRecord) {
    return { ...task, schedule: this.#indexOf(schedule) };
  }

  /** Attempts of the last few claims are the most likely to be held. */
  chooseClaim({ pick, held }: Pick): Claim | undefined {
    return choose(held ? this.claims.slice(-8) : this.claims, pick);
  }

  /**
   * Everything that can be seen from outside, and every counter that is wrong. `after`: whether the events of the last command
   * have a defined order. Those of tasks that are cancelled together have none.
   */
  async look(after: { inOrder: boolean } = { inOrder: true }) {
    const { tasks, nodes, lanes, agents, counters, events, schedules } = this.storage;
    const [
      tenants,
      { events: newEvents },
      range,
      dueAt,
      nodeList,
      laneList,
      catalogue,
      bounded,
      records,
      faults,
      scheduleAt,
      due,
      { notifications },
    ] = await Promise.all([
      Promise.all(TENANTS.map((tenant) => this.#lookAtTenant(tenant))),
      events.read({ after: this.#eventsSeen.at(-1) ?? 0, limit: 10_000, bytesMax: 1e9 }),
      events.range(),
      tasks.nextDueAt(),
      nodes.list(),
      lanes.list(),
      agents.list(),
      agents.bounded(),
      this.storage.tenants.list(),
      counters.recountAll(),
      schedules.nextDueAt(),
      Promise.all([
        schedules.due({ limit: 100 }),
        schedules.due({ limit: 1, after: "tiny" }),
        schedules.due({ limit: 3, after: "acme" }),
      ]),
      this.storage.notifications.read({ after: this.#read.at(-1) ?? 0, limit: 10_000 }),
    ]);
    this.#read.push(...notifications.map(({ seq }) => seq));
    this.#eventsSeen.push(...newEvents.map(({ seq }) => seq));
    return {
      tenants,
      events: (after.inOrder ? newEvents : newEvents.toSorted(byTask)).map((event) =>
        this.#comparableEvent(event),
      ),
      range: {
        oldest: this.#eventsSeen.indexOf(range.oldest),
        newest: this.#eventsSeen.indexOf(range.newest),
      },
      dueAt,
      scheduleAt,
      due: due.map((found) => found.map((schedule) => this.comparableSchedule(schedule))),
      notifications: (after.inOrder ? notifications : notifications.toSorted(byRun)).map((notification) =>
        this.#comparableNotification(notification),
      ),
      catalogue,
      bounded,
      // The default tenant is as old as its storage, and the two storages differ in age.
      records: records.filter(({ id }) => id !== DEFAULT_TENANT),
      nodes: nodeList.sort((a, b) => (a.node < b.node ? -1 : 1)),
      lanes: laneList.sort((a, b) => (a.name < b.name ? -1 : 1)),
      faults,
    };
  }

  async #lookAtTenant(tenant: string) {
    const newest = batchId(this.batches);
    const { schedules } = this.storage;
    const [
      list,
      together,
      batch,
      { sessions },
      ofSession,
      { deliveries },
      counts,
      depth,
      waiting,
      listed,
      scheduleCounts,
      { runs },
      ofAgent,
      rollups,
    ] = await Promise.all([
      this.storage.tasks.list({ tenant, limit: 10_000 }),
      this.storage.tasks.list({ tenant, batch: newest, limit: 10_000 }),
      this.storage.tasks.getBatch({ tenant, id: newest }),
      this.storage.sessions.list({ tenant, limit: 100 }),
      this.storage.tasks.list({ tenant, session: "s1", limit: 10_000 }),
      this.storage.deliveries.list({ tenant, limit: 10_000 }),
      this.storage.tasks.counts({ tenant }),
      this.storage.tasks.queueDepth({ tenant }),
      this.storage.tasks.waiting({ tenant }),
      schedules.list({ tenant, limit: 1_000 }),
      schedules.status({ tenant }),
      schedules.listRuns({ tenant, limit: 10_000 }),
      Promise.all([
        this.storage.sessions.list({ tenant, agent: "a", limit: 2 }),
        schedules.listRuns({ tenant, agent: "a", limit: 3 }),
      ]),
      lookAtRollups(this.storage, tenant),
    ]);
    return {
      tasks: list.tasks.map((task) => this.comparableTask(task)),
      nextCursor: list.nextCursor,
      together: together.tasks.map(({ id }) => id),
      batch,
      sessions: sessions.map(comparableSession),
      ofSession: ofSession.tasks.map(({ id }) => id),
      situations: await this.#situations(list.tasks.filter(({ state }) => state === "queued").slice(0, 2)),
      deliveries: deliveries.sort(byEnd).map(comparableDelivery),
      counts,
      waiting,
      depth,
      schedules: listed.map((schedule) => this.comparableSchedule(schedule)),
      scheduleCounts,
      runs: runs.map((run) => this.#comparableRun(run)),
      ofAgent: {
        sessions: ofAgent[0].sessions.map(comparableSession),
        runs: ofAgent[1].runs.map((run) => this.#comparableRun(run)),
        more: ofAgent.map(({ nextCursor }) => nextCursor !== null),
      },
      rollups,
    };
  }

  async #situations(tasks: readonly TaskRecord[]) {
    const situations = await Promise.all(tasks.map((task) => this.storage.tasks.situation(task)));
    return situations.map((situation) => situation && { ...situation, task: null });
  }

  /** The number of a start is its token. */
  #comparableEvent({ seq, bytes: _bytes, schedule, ...event }: StoredEvent) {
    return {
      ...event,
      schedule: this.#indexOf(schedule),
      claim: event.type === "task.started" ? this.claimOf(seq) : null,
    };
  }
}

export function batchId(number: number): string {
  return `batch-${number}`;
}

export function comparableSession({ seq: _seq, ...session }: SessionRecord) {
  return session;
}

export function comparableDelivery({ seq: _seq, taskSeq: _taskSeq, ...delivery }: DeliveryRecord) {
  return delivery;
}

/** Tasks that ended together have no defined order. The ends of one task follow each other. */
export function byEnd(a: DeliveryRecord, b: DeliveryRecord): number {
  return a.taskId === b.taskId ? a.seq - b.seq : a.taskId < b.taskId ? -1 : 1;
}

function byTask(a: StoredEvent, b: StoredEvent): number {
  return a.taskId === b.taskId ? a.seq - b.seq : a.taskId < b.taskId ? -1 : 1;
}

/** Runs that ended together have no defined order. */
function byRun(a: StoredNotification, b: StoredNotification): number {
  return (a.run?.id ?? 0) - (b.run?.id ?? 0) || a.seq - b.seq;
}

export function choose<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(items.length, 1)];
}

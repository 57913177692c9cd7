import { CONSECUTIVE_CRITICAL_MAX, isCritical } from "../../../../model/priority.ts";
import { jsonWeight } from "../../../../model/text/json-weight.ts";
import { isAloneKind } from "../../../alone-queue.ts";
import { ALL_AGENTS, type AssignedTask, type WorkerPoll } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue, ReadyEntry } from "../../counters/ledger.ts";
import { agentQueuesForWorkers, isForWorkers } from "../../counters/standing.ts";
import type { TenantQueue } from "../../counters/tenant-ledger.ts";
import { compareFairness, countStart, startAttempt } from "../../tasks/steps/claim-tasks.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "../../tasks/task-row.ts";

/** How many agent queues of a worker for all agents one claim checks. */
const LOOKED_AT = 1_000;

interface WorkerRow {
  readonly id: string;
  readonly tenant: string;
  readonly agents: string;
  readonly slots: number;
  readonly lease_ms: number;
  readonly draining: 0 | 1;
}

/** A worker of the polls, and what it holds. */
interface Taker {
  readonly row: WorkerRow;
  readonly agents: readonly string[];
  held: number;
  holdsAlone: boolean;
}

/** A poll that may still get tasks. */
interface OpenPoll {
  /** Its position among the polls: the longest waiting first. */
  readonly n: number;
  readonly poll: WorkerPoll;
  readonly taker: Taker;
  readonly assigned: AssignedTask[];
  /** How many more tasks it may get, apart from the slots of its worker. */
  left: number;
}

/** Polls that can run the same agents, which their workers and they name in the same order. */
interface PollGroup {
  readonly polls: OpenPoll[];
}

/** An agent queue that the polls of these groups can run. */
interface Candidate {
  readonly agentQueue: AgentQueue;
  readonly groups: readonly PollGroup[];
}

/** A start that is decided. */
interface Start {
  readonly agentQueue: AgentQueue;
  readonly token: number;
  readonly open: OpenPoll;
}

/** Assigns ready tasks to the polls of workers, one after the other, in the order in which the scheduler starts them. */
export class Assignments {
  readonly #tx: Transaction;
  readonly #answers: (AssignedTask[] | null)[];
  readonly #groups = new Map<string, PollGroup>();
  readonly #candidates: readonly Candidate[];

  constructor(tx: Transaction, polls: readonly WorkerPoll[]) {
    this.#tx = tx;
    const takers = takersOf(tx, polls);
    const repeated = repeatedOf(tx, polls);
    this.#answers = polls.map((poll, n) => {
      const taker = takers.get(poll.worker);
      if (taker === undefined) return null;
      if (repeated.has(keyOf(poll))) {
        const live = liveOf(tx, poll);
        if (live.length > 0) return live;
      }
      const assigned: AssignedTask[] = [];
      if (taker.row.draining === 0) this.#openPoll({ n, poll, taker, assigned });
      return assigned;
    });
    this.#candidates = this.#findCandidates();
  }

  make(): (AssignedTask[] | null)[] {
    this.#tx.ledger.countTenants();
    // Which task is first in its queue decides whether it goes ahead of fairness: such queues are read one task at a time.
    while (this.#candidates.some(({ agentQueue }) => this.#tx.ledger.isAhead(agentQueue))) {
      const start = this.#next();
      if (start === null) return this.#answers;
      this.#begin([start]);
    }
    const starts: Start[] = [];
    for (let start = this.#next(); start !== null; start = this.#next()) starts.push(start);
    this.#begin(starts);
    return this.#answers;
  }

  /** Whether limits hold back ready tasks that the polls could run. */
  get held(): boolean {
    return this.#candidates.some(({ agentQueue }) => agentQueue.ready > 0 && !this.#isStartable(agentQueue));
  }

  #openPoll({ n, poll, taker, assigned }: Omit<OpenPoll, "left">): void {
    const { tenant, agents } = taker.row;
    const key = JSON.stringify([tenant, agents, poll.agents, poll.except]);
    const group = this.#groups.get(key) ?? { polls: [] };
    group.polls.push({ n, poll, taker, assigned, left: Math.min(poll.max, poll.tokens.length) });
    this.#groups.set(key, group);
  }

  /** Decides on the next start and counts it. Null: nothing can start. */
  #next(): Start | null {
    const { ledger, db } = this.#tx;
    const best: BestPolls = new Map();
    const startable = this.#candidates.filter(
      (candidate) => this.#isStartable(candidate.agentQueue) && pollFor(candidate, best) !== undefined,
    );
    const first = smallest(startable, (a, b) => byUrgency(a.agentQueue, b.agentQueue));
    if (first === undefined) return null;
    const inLane = startable.filter(({ agentQueue: { lane } }) => lane === first.agentQueue.lane);
    const tenant = this.#nextTenant(inLane.map(({ agentQueue }) => agentQueue));
    const chosen = this.#choose(
      tenant,
      inLane.filter(({ agentQueue }) => agentQueue.tenant === tenant.tenant),
    );
    const { agentQueue } = chosen;
    const open = pollFor(chosen, best);
    if (open === undefined) throw new Error(`no poll can take a task of line ${agentQueue.id}`);
    const token = db.nextEventSeq();
    tenant.preemptionCredit = Math.max(tenant.preemptionCredit - 1, 0);
    tenant.last_served = token;
    countStart(this.#tx, agentQueue, token);
    ledger.countTenantOf(agentQueue);
    open.left -= 1;
    open.taker.held += 1;
    if (isAloneKind(agentQueue.kind)) open.taker.holdsAlone = true;
    return { agentQueue, token, open };
  }

  /** One query reads the tasks of each agent queue. */
  #begin(starts: readonly Start[]): void {
    const taken = new Map<AgentQueue, ReadyEntry[]>();
    for (const [agentQueue, own] of Map.groupBy(starts, (start) => start.agentQueue))
      taken.set(agentQueue, this.#tx.ledger.takeReady(agentQueue, own.length).reverse());
    for (const { agentQueue, token, open } of starts) {
      const entry = taken.get(agentQueue)?.pop();
      if (entry === undefined) throw new Error(`line ${agentQueue.id} ran out of tasks`);
      this.#assign(open, { agentQueue, taskSeq: entry.task_seq, token });
    }
  }

  #assign(open: OpenPoll, pick: Parameters<typeof startAttempt>[1]): void {
    const tx = this.#tx;
    const { poll, taker, assigned } = open;
    const { token, task, bytes } = startAttempt(tx, pick, { node: taker.row.id, state: "assigned" });
    const secret = poll.tokens[assigned.length];
    if (secret === undefined) throw new Error("a poll got more tasks than it has tokens");
    const { timeoutMs } = task.spec;
    tx.prepare(
      `insert into worker_attempt (hash, nonce, worker, claim, tenant, task_id, task_seq, token, number, assigned_at, times_out_at,
                                   deadline, unnamed_until)
       values (@hash, @nonce, @worker, @claim, @tenant, @id, @seq, @token, @number, @now, @timesOutAt, @deadline, @unnamedUntil)`,
    ).run({
      ...secret,
      worker: taker.row.id,
      claim: poll.claim,
      tenant: task.tenant,
      id: task.id,
      seq: task.seq,
      token,
      number: task.attempts.length,
      now: tx.now,
      timesOutAt: timeoutMs === null ? null : tx.now + timeoutMs,
      deadline: task.deadline,
      unnamedUntil: tx.now + taker.row.lease_ms,
    });
    assigned.push({ token, nonce: secret.nonce, task, bytes, assignedAt: tx.now });
  }

  /** A tenant with pre-emption credit, else the one with the fewest in flight; of several, the one served longest ago. */
  #nextTenant(agentQueues: readonly AgentQueue[]): TenantQueue {
    const { tenants } = this.#tx.ledger;
    const [first] = [...new Set(agentQueues.map((agentQueue) => tenants.of(agentQueue)))].sort(
      (a, b) =>
        Number(b.preemptionCredit > 0) - Number(a.preemptionCredit > 0) ||
        a.inflight - b.inflight ||
        a.last_served - b.last_served ||
        a.id - b.id,
    );
    if (first === undefined) throw new Error("a lane with something to start has a tenant");
    return first;
  }

  #choose(tenant: TenantQueue, candidates: readonly Candidate[]): Candidate {
    const { ledger } = this.#tx;
    const isFair = ledger.lane(tenant.lane).strategy === "fair-fifo";
    const ahead = candidates.filter(({ agentQueue }) => ledger.isAhead(agentQueue));
    const goesAhead = ahead.length > 0 && (!isFair || tenant.ahead_streak < CONSECUTIVE_CRITICAL_MAX);
    if (isFair) tenant.ahead_streak = goesAhead ? tenant.ahead_streak + 1 : 0;
    const first = goesAhead
      ? smallest(ahead, (a, b) => byHead(a.agentQueue, b.agentQueue))
      : smallest(candidates, (a, b) => compareFairness(a.agentQueue, b.agentQueue));
    if (first === undefined) throw new Error(`tenant ${tenant.tenant} has nothing to start`);
    return first;
  }

  #isStartable(agentQueue: AgentQueue): boolean {
    const { ledger } = this.#tx;
    const { total, inflight } = ledger.lane(agentQueue.lane);
    return (
      (total === null || inflight < total) &&
      ledger.roomForWorkers(agentQueue) > 0 &&
      !ledger.tenants.isAtBound(agentQueue) &&
      ledger.tenants.shareRoom(ledger.tenants.of(agentQueue)) > 0
    );
  }

  #findCandidates(): Candidate[] {
    const { ledger, db } = this.#tx;
    const groups = [...this.#groups.values()];
    const agentsOf = new Map<string, Set<string>>();
    for (const { polls } of groups) {
      const taker = polls[0]?.taker;
      if (taker === undefined) continue;
      const agents = agentsOf.get(taker.row.tenant) ?? new Set();
      for (const agent of taker.agents) agents.add(agent);
      agentsOf.set(taker.row.tenant, agents);
    }
    const ids = [...agentsOf].flatMap(([tenant, agents]) =>
      agentQueuesForWorkers(db, { tenant, agents: [...agents], limit: LOOKED_AT }),
    );
    const found = new Set(ids);
    // Those that this transaction has changed may have tasks that the tables do not have yet.
    const touched = ledger
      .agentQueues()
      .filter(({ id, tenant, ready }) => ready > 0 && agentsOf.has(tenant) && !found.has(id))
      .filter(({ id }) => isForWorkers(db, id));
    return [...touched, ...ledger.agentQueuesOf(ids)].flatMap((agentQueue) => {
      const able = groups.filter(({ polls: [poll] }) => poll !== undefined && canRun(poll, agentQueue));
      return able.length === 0 ? [] : { agentQueue, groups: able };
    });
  }
}

/** The live workers of these polls, and what they hold. */
function takersOf(tx: Transaction, polls: readonly WorkerPoll[]): Map<string, Taker> {
  const ids = JSON.stringify([...new Set(polls.map(({ worker }) => worker))]);
  const rows = tx
    .prepare<WorkerRow>(
      `select id, tenant, agents, slots, lease_ms, draining from worker
        where id in (select value from json_each(?)) and lost = 0`,
    )
    .all(ids);
  const held = tx
    .prepare<{ node: string; kind: AgentQueue["kind"]; held: number }>(
      `select l.node, n.kind, count(*) as held from lease l join line n on n.id = l.line
        where l.node in (select value from json_each(?)) group by l.node, n.kind`,
    )
    .all(ids);
  const byWorker = Map.groupBy(held, ({ node }) => node);
  return new Map(
    rows.map((row) => {
      const own = byWorker.get(row.id) ?? [];
      return [
        row.id,
        {
          row,
          agents: JSON.parse(row.agents),
          held: own.reduce((sum, each) => sum + each.held, 0),
          holdsAlone: own.some(({ kind }) => isAloneKind(kind)),
        },
      ];
    }),
  );
}

/** The claims among these polls that an earlier call assigned something to, by `keyOf`. */
function repeatedOf(tx: Transaction, polls: readonly WorkerPoll[]): Set<string> {
  if (polls.length === 0) return new Set();
  const rows = tx
    .prepare<{ worker: string; claim: string }>(
      `select distinct a.worker, a.claim from json_each(?) p cross join worker_attempt a
        where a.worker = p.value ->> 0 and a.claim = p.value ->> 1`,
    )
    .all(JSON.stringify(polls.map(({ worker, claim }) => [worker, claim])));
  return new Set(rows.map(keyOf));
}

function keyOf({ worker, claim }: Pick<WorkerPoll, "worker" | "claim">): string {
  return `${worker} ${claim}`;
}

/** Which poll of a group gets the next task that need not run alone. Many agent queues share a group. */
type BestPolls = Map<PollGroup, OpenPoll | undefined>;

/** Of the polls that can take a task of an agent queue: the one whose worker holds the fewest, then the longest waiting. */
function pollFor({ agentQueue, groups }: Candidate, known: BestPolls): OpenPoll | undefined {
  const isAlone = isAloneKind(agentQueue.kind);
  let best: OpenPoll | undefined;
  for (const group of groups) {
    if (!isAlone && !known.has(group)) known.set(group, bestOf(group, { isAlone }));
    const open = isAlone ? bestOf(group, { isAlone }) : known.get(group);
    if (open !== undefined && (best === undefined || isBefore(open, best))) best = open;
  }
  return best;
}

function bestOf({ polls }: PollGroup, { isAlone }: { readonly isAlone: boolean }): OpenPoll | undefined {
  let best: OpenPoll | undefined;
  for (const open of polls) {
    const { taker, left } = open;
    if (left <= 0 || taker.holdsAlone || taker.held >= (isAlone ? 1 : taker.row.slots)) continue;
    if (best === undefined || isBefore(open, best)) best = open;
  }
  return best;
}

function isBefore(one: OpenPoll, other: OpenPoll): boolean {
  return one.taker.held < other.taker.held || (one.taker.held === other.taker.held && one.n < other.n);
}

function smallest<Item>(items: readonly Item[], compare: (a: Item, b: Item) => number): Item | undefined {
  let best: Item | undefined;
  for (const item of items) if (best === undefined || compare(item, best) < 0) best = item;
  return best;
}

/** Whether the agents of a poll include that of an agent queue which workers can run. */
function canRun({ poll, taker }: Pick<OpenPoll, "poll" | "taker">, { tenant, agent }: AgentQueue): boolean {
  if (taker.row.tenant !== tenant || (poll.agents !== null && !poll.agents.includes(agent))) return false;
  if (poll.except?.includes(agent)) return false;
  return taker.agents.includes(agent) || taker.agents.includes(ALL_AGENTS);
}

/** The attempts that an earlier call assigned to the same claim, and that are still held. */
function liveOf(tx: Transaction, { worker, claim }: WorkerPoll): AssignedTask[] {
  const rows = tx
    .prepare<TaskRow & { token: number; nonce: string; assigned_at: number }>(
      `select ${TASK_COLUMNS}, a.token, a.nonce, a.assigned_at
         from worker_attempt a cross join ${taskTables()}
        where a.worker = ? and a.claim = ? and t.seq = a.task_seq and l.token = a.token order by a.token`,
    )
    .all(worker, claim);
  return rows.map(({ token, nonce, assigned_at, ...row }) => ({
    ...{ token, nonce },
    task: toTaskRecord(tx.db, row),
    bytes: jsonWeight(row.spec),
    assignedAt: assigned_at,
  }));
}

function byUrgency(a: AgentQueue, b: AgentQueue): number {
  return isUrgent(b) - isUrgent(a) || a.last_served - b.last_served || a.id - b.id;
}

function isUrgent({ head_rank: rank }: AgentQueue): number {
  return rank !== null && isCritical(rank) ? 1 : 0;
}

function byHead(a: AgentQueue, b: AgentQueue): number {
  return (a.head_rank ?? 0) - (b.head_rank ?? 0) || (a.head_seq ?? 0) - (b.head_seq ?? 0);
}

import { CONSECUTIVE_CRITICAL_MAX, isCritical } from "../../../../model/priority.ts";
import { isAloneKind } from "../../../alone-queue.ts";
import { ALL_AGENTS, type AssignedTask, type WorkerPoll } from "../../../storage.ts";
import type { SqliteDatabase } from "../../connection/database.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue } from "../../counters/ledger.ts";
import { agentQueuesForWorkers, isForAnyWorker, isForWorkers } from "../../counters/standing.ts";
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
  readonly poll: WorkerPoll;
  readonly taker: Taker;
  readonly assigned: AssignedTask[];
}

/** Assigns ready tasks to the polls of workers, one after the other, in the order in which the scheduler starts them. */
export class Assignments {
  readonly #tx: Transaction;
  readonly #answers: (AssignedTask[] | null)[];
  readonly #open: OpenPoll[] = [];
  readonly #takers = new Map<string, Taker | null>();
  /** The agent queues that the polls can run, and by which of them. */
  readonly #agentQueues: readonly AgentQueue[];

  constructor(tx: Transaction, polls: readonly WorkerPoll[]) {
    this.#tx = tx;
    this.#answers = polls.map((poll) => {
      const taker = this.#takerOf(poll.worker);
      if (taker === null) return null;
      const repeated = liveOf(tx, poll);
      if (repeated.length > 0) return repeated;
      const assigned: AssignedTask[] = [];
      if (taker.row.draining === 0) this.#open.push({ poll, taker, assigned });
      return assigned;
    });
    this.#agentQueues = this.#findAgentQueues();
  }

  make(): (AssignedTask[] | null)[] {
    while (this.#assignNext());
    return this.#answers;
  }

  /** Whether limits hold back ready tasks that the polls could run. */
  get held(): boolean {
    return this.#agentQueues.some((agentQueue) => agentQueue.ready > 0 && !this.#isStartable(agentQueue));
  }

  #assignNext(): boolean {
    const { ledger, db } = this.#tx;
    ledger.countTenants();
    const candidates = this.#agentQueues.filter(
      (agentQueue) => this.#isStartable(agentQueue) && this.#pollFor(agentQueue) !== undefined,
    );
    const [first] = candidates.toSorted(byUrgency);
    if (first === undefined) return false;
    const inLane = candidates.filter(({ lane }) => lane === first.lane);
    const tenant = this.#nextTenant(inLane);
    const agentQueue = this.#choose(
      tenant,
      inLane.filter((each) => each.tenant === tenant.tenant),
    );
    const poll = this.#pollFor(agentQueue);
    if (poll === undefined) throw new Error(`no poll can take a task of line ${agentQueue.id}`);
    const token = db.nextEventSeq();
    tenant.owed = Math.max(tenant.owed - 1, 0);
    tenant.last_served = token;
    countStart(this.#tx, agentQueue, token);
    const [entry] = ledger.takeReady(agentQueue, 1);
    if (entry === undefined) throw new Error(`line ${agentQueue.id} ran out of tasks`);
    this.#assign(poll, { agentQueue, taskSeq: entry.task_seq, token });
    return true;
  }

  #assign(open: OpenPoll, pick: Parameters<typeof startAttempt>[1]): void {
    const tx = this.#tx;
    const { poll, taker, assigned } = open;
    const { token, task } = startAttempt(tx, pick, { node: taker.row.id, state: "assigned" });
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
    taker.held += 1;
    if (isAloneKind(pick.agentQueue.kind)) taker.holdsAlone = true;
    assigned.push({ token, nonce: secret.nonce, task, assignedAt: tx.now });
  }

  /** A tenant with pre-emption credit, else the one with the fewest in flight; of several, the one served longest ago. */
  #nextTenant(agentQueues: readonly AgentQueue[]): TenantQueue {
    const { tenants } = this.#tx.ledger;
    const [first] = [...new Set(agentQueues.map((agentQueue) => tenants.of(agentQueue)))].sort(
      (a, b) =>
        Number(b.owed > 0) - Number(a.owed > 0) ||
        a.inflight - b.inflight ||
        a.last_served - b.last_served ||
        a.id - b.id,
    );
    if (first === undefined) throw new Error("a lane with something to start has a tenant");
    return first;
  }

  #choose(tenant: TenantQueue, agentQueues: readonly AgentQueue[]): AgentQueue {
    const { ledger } = this.#tx;
    const isFair = ledger.lane(tenant.lane).strategy === "fair-fifo";
    const ahead = agentQueues.filter((agentQueue) => ledger.isAhead(agentQueue));
    const goesAhead = ahead.length > 0 && (!isFair || tenant.ahead_streak < CONSECUTIVE_CRITICAL_MAX);
    if (isFair) tenant.ahead_streak = goesAhead ? tenant.ahead_streak + 1 : 0;
    const [first] = goesAhead ? ahead.toSorted(byHead) : agentQueues.toSorted(compareFairness);
    if (first === undefined) throw new Error(`tenant ${tenant.tenant} has nothing to start`);
    return first;
  }

  /** Of the polls that can take a task of an agent queue: the one whose worker holds the fewest, then the longest waiting. */
  #pollFor(agentQueue: AgentQueue): OpenPoll | undefined {
    return this.#open
      .filter(({ poll, taker, assigned }) => {
        if (taker.holdsAlone || (isAloneKind(agentQueue.kind) && taker.held > 0)) return false;
        const left = Math.min(poll.max, poll.tokens.length) - assigned.length;
        return (
          Math.min(left, taker.row.slots - taker.held) > 0 && canRun(this.#tx.db, { poll, taker }, agentQueue)
        );
      })
      .sort((a, b) => a.taker.held - b.taker.held)[0];
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

  #findAgentQueues(): AgentQueue[] {
    const { ledger, db } = this.#tx;
    const agentsOf = new Map<string, Set<string>>();
    for (const { taker } of this.#open) {
      const agents = agentsOf.get(taker.row.tenant) ?? new Set();
      for (const agent of taker.agents) agents.add(agent);
      agentsOf.set(taker.row.tenant, agents);
    }
    const ids = [...agentsOf].flatMap(([tenant, agents]) =>
      agentQueuesForWorkers(db, { tenant, agents: [...agents], limit: LOOKED_AT }),
    );
    // Those that this transaction has changed may have tasks that the tables do not have yet.
    const touched = ledger
      .agentQueues()
      .filter(({ id, tenant }) => agentsOf.has(tenant) && !ids.includes(id) && isForWorkers(db, id));
    return [...touched, ...ledger.agentQueuesOf(ids)].filter((agentQueue) =>
      this.#open.some((open) => canRun(db, open, agentQueue)),
    );
  }

  #takerOf(id: string): Taker | null {
    const known = this.#takers.get(id);
    if (known !== undefined) return known;
    const tx = this.#tx;
    const row = tx
      .prepare<WorkerRow>(
        "select id, tenant, agents, slots, lease_ms, draining from worker where id = ? and lost = 0",
      )
      .get(id);
    const taker = row === undefined ? null : { row, agents: JSON.parse(row.agents), ...holdings(tx, id) };
    this.#takers.set(id, taker);
    return taker;
  }
}

function holdings(tx: Transaction, worker: string): { held: number; holdsAlone: boolean } {
  const kinds = tx
    .prepare<{ kind: AgentQueue["kind"] }>(
      "select n.kind from lease l join line n on n.id = l.line where l.node = ?",
    )
    .all(worker);
  return { held: kinds.length, holdsAlone: kinds.some(({ kind }) => isAloneKind(kind)) };
}

/** Whether the agents of a poll include that of an agent queue which workers can run. */
function canRun(
  db: SqliteDatabase,
  { poll, taker }: Pick<OpenPoll, "poll" | "taker">,
  { id, tenant, agent }: AgentQueue,
): boolean {
  if (taker.row.tenant !== tenant || (poll.agents !== null && !poll.agents.includes(agent))) return false;
  if (poll.except?.includes(agent)) return false;
  return taker.agents.includes(agent) || (taker.agents.includes(ALL_AGENTS) && isForAnyWorker(db, id));
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

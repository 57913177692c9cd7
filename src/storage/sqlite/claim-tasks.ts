import { AHEAD_STREAK_MAX, isCritical } from "../../model/priority.ts";
import type { ClaimedTask, TaskOrigin } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { type LaneRow, type Ledger, LINE_COLUMNS, type Line, type ReadyEntry } from "./ledger.ts";
import { earlierAttempts, readUsage } from "./task-row.ts";

/**
 * Hands out up to `limit` tasks of a lane, inside a transaction, in the order in which one claim after the other would
 * have handed them out. What it reads grows with `limit`, not with what waits.
 */
export function claimTasks(
  db: SqliteDatabase,
  ledger: Ledger,
  params: { node: string; lane: string; limit: number },
  now: number,
): ClaimedTask[] {
  const lane = ledger.lane(params.lane);
  const room = lane.total === null ? params.limit : Math.min(params.limit, lane.total - lane.inflight);
  const picks = room > 0 ? chooseTasks(db, ledger, lane, room) : [];
  return picks.map((pick) => startAttempt(db, ledger, pick, params.node, now));
}

/** A task that was chosen. The token is also the number of its `task.started` event. */
interface Pick {
  readonly line: Line;
  readonly taskSeq: number;
  readonly token: number;
}

/** Critical tasks go ahead of fairness, but after a streak of them one start is fair again. */
function chooseTasks(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, room: number): Pick[] {
  const picks: Pick[] = [];
  const fair = lane.strategy === "fair-fifo";
  while (picks.length < room) {
    const left = room - picks.length;
    const aheadMax = fair ? Math.min(left, AHEAD_STREAK_MAX - lane.ahead_streak) : left;
    const ahead = aheadMax > 0 ? chooseAhead(db, ledger, lane, aheadMax) : [];
    picks.push(...ahead);
    if (fair) lane.ahead_streak += ahead.length;
    if (ahead.length > 0) continue;
    if (!fair) break;
    // Where nothing goes ahead, all that is left is fair; after a full streak, one start is.
    const fairly = chooseFairly(db, ledger, lane, aheadMax > 0 ? left : 1);
    picks.push(...fairly);
    if (fairly.length === 0) break;
    lane.ahead_streak = 0;
  }
  return picks;
}

/** The smallest (rank, seq) among the heads that go ahead, up to `count` times. */
function chooseAhead(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, count: number): Pick[] {
  const candidates = candidateLines(db, ledger, lane, count, "ahead = 1", "head_rank, head_seq");
  const picks: Pick[] = [];
  while (picks.length < count) {
    const line = first(
      candidates.filter((line) => ledger.isAhead(line) && ledger.room(line) > 0),
      (a, b) => compare(a.head_rank, b.head_rank) || compare(a.head_seq, b.head_seq),
    );
    if (line === undefined) break;
    const token = countStart(db, lane, line);
    for (const { task_seq: taskSeq } of ledger.takeReady(line, 1)) picks.push({ line, taskSeq, token });
  }
  return picks;
}

/** The line with the fewest in flight, ties to the one served longest ago, up to `count` times. */
function chooseFairly(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, count: number): Pick[] {
  const candidates = candidateLines(db, ledger, lane, count, "1", "inflight, last_served, id");
  const starts: { line: Line; token: number }[] = [];
  const starting = new Map<Line, number>();
  while (starts.length < count) {
    let line: Line | undefined;
    for (const other of candidates) {
      if (ledger.room(other) > 0 && (line === undefined || compareFairness(other, line) < 0)) line = other;
    }
    if (line === undefined) break;
    starts.push({ line, token: countStart(db, lane, line) });
    starting.set(line, (starting.get(line) ?? 0) + 1);
  }
  // Who is served when is settled; now the tasks of each line in one read.
  const taken = new Map<Line, ReadyEntry[]>();
  for (const [line, many] of starting) taken.set(line, ledger.takeReady(line, many).reverse());
  return starts.map(({ line, token }) => {
    const entry = taken.get(line)?.pop();
    if (entry === undefined) throw new Error(`line ${line.id} ran out of tasks`);
    return { line, taskSeq: entry.task_seq, token };
  });
}

/**
 * Lines that may hold the next `count` starts: the first ones by the index, and those that this transaction has
 * changed, since the index does not know of that yet.
 */
export function candidateLines(
  db: SqliteDatabase,
  ledger: Ledger,
  lane: LaneRow,
  count: number,
  condition: string,
  order: string,
  values: readonly string[] = [],
): Line[] {
  const touched = ledger.linesTouchedIn(lane.name);
  const rows = db
    .prepare<Line>(
      `select ${LINE_COLUMNS} from line where lane = ? and startable = 1 and ${condition} order by ${order} limit ?`,
    )
    .all(lane.name, ...values, count + touched.length);
  return [...new Set([...touched, ...rows.map((row) => ledger.adopt(row))])];
}

function countStart(db: SqliteDatabase, lane: LaneRow, line: Line): number {
  const token = db.nextEventSeq();
  line.ready -= 1;
  line.waiting -= 1;
  line.inflight += 1;
  line.last_served = token;
  lane.waiting -= 1;
  lane.inflight += 1;
  return token;
}

/** What of a task is not the same for every one that starts. An array: half the cost of an object, for every task. */
type QueuedTask = [
  id: string,
  priority: number,
  position: number,
  createdAt: number,
  runAt: number | null,
  deadline: number | null,
  retryCount: number,
  executions: number,
  startedAt: number | null,
  spec: string,
  batch: string | null,
  callbackUrl: string | null,
  hasDependants: 0 | 1,
  preemptionsLeft: number,
  session: number | null,
  origin: TaskOrigin,
  schedule: number | null,
];

const QUEUED_TASK = `
  select id, priority, position, created_at, run_at, deadline, retry_count, executions, started_at, spec,
         batch, callback_url, has_dependants, preemptions_left, session, origin, schedule
    from task where seq = ? and resting_state = 'queued'`;

function startAttempt(
  db: SqliteDatabase,
  ledger: Ledger,
  pick: Pick,
  node: string,
  now: number,
): ClaimedTask {
  const { line, taskSeq, token } = pick;
  const task = db.prepare<QueuedTask>(QUEUED_TASK).raw().get(taskSeq);
  if (task === undefined) throw new Error(`task ${taskSeq} is ready but not queued`);
  const [
    id,
    priority,
    position,
    createdAt,
    runAt,
    deadline,
    retryCount,
    executions,
    startedAt,
    spec,
    ...more
  ] = task;
  const [batch, callbackUrl, hasDependants, preemptionsLeft, session, origin, schedule] = more;
  if (session !== null || origin !== "task") ledger.countSpecial(line, { session, origin }, -1);
  const { tenant, agent, lane } = line;
  const attempt = executions + 1;
  db.prepare(
    `insert into lease (task_seq, token, node, line, state, attempt, started_at, calls_back, has_dependants, batch,
                        priority, preemptible, session, origin)
     values (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    taskSeq,
    token,
    node,
    line.id,
    attempt,
    now,
    callbackUrl === null ? 0 : 1,
    hasDependants,
    batch,
    priority,
    preemptionsLeft > 0 && !isCritical(priority) ? 1 : 0,
    session,
    origin,
  );
  ledger.events.add({ seq: token, type: "task.started", at: now, tenant, taskSeq, data: { attempt } });
  const attempts = executions === 0 ? [] : earlierAttempts(db, taskSeq);
  attempts.push({ number: attempt, startedAt: now, endedAt: null, outcome: null, error: null, node });
  return {
    token,
    task: {
      seq: taskSeq,
      id,
      tenant,
      agent,
      lane,
      priority,
      state: "running",
      position,
      createdAt,
      runAt,
      deadline,
      retryCount,
      batch,
      session: session === null ? null : ledger.sessions.get(session).key,
      schedule,
      callbackUrl,
      startedAt: startedAt ?? now,
      completedAt: null,
      spec: JSON.parse(spec),
      result: undefined,
      error: null,
      usage: executions === 0 ? null : readUsage(db, taskSeq),
      attempts,
    },
  };
}

function compareFairness(a: Line, b: Line): number {
  return a.inflight - b.inflight || a.last_served - b.last_served || a.id - b.id;
}

function first<T>(items: readonly T[], order: (a: T, b: T) => number): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || order(item, best) < 0 ? item : best),
    undefined,
  );
}

function compare(a: number | null, b: number | null): number {
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}

import type { CounterFault } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { Ledger, LINE_COLUMNS, type Line } from "./ledger.ts";

/** Counting a longer line than this would hold up everybody else for what is a precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

/** Recounts one line, and mends it and its lane if it is off. */
export async function recountOne(db: SqliteDatabase, params: { random: number }): Promise<CounterFault[]> {
  return db.write(() => {
    const newest = db.prepare<{ id: number | null }>("select max(id) as id from line").get()?.id ?? 0;
    const line = db
      .prepare<Line>(
        `select ${LINE_COLUMNS} from line where id >= ? and waiting + inflight <= ? order by id limit 1`,
      )
      .get(Math.ceil(params.random * newest), RECOUNTED_TASKS_MAX);
    if (line === undefined) return [];
    const faults = faultsOf(db, line);
    if (faults.length > 0) mend(db, line);
    return faults;
  });
}

/** Recounts everything and changes nothing. */
export async function recountAll(db: SqliteDatabase): Promise<CounterFault[]> {
  const lines = db.prepare<Line>(`select ${LINE_COLUMNS} from line`).all();
  return [
    ...lines.flatMap((line) => faultsOf(db, line)),
    ...flagFaults(db),
    ...laneFaults(db),
    ...tallyFaults(db),
  ];
}

interface LineCount {
  readonly waiting: number;
  readonly ready: number;
  readonly inflight: number;
  readonly head_rank: number | null;
  readonly head_seq: number | null;
}

function countLine(db: SqliteDatabase, id: number): LineCount {
  return db
    .prepare<LineCount>(
      `select (select count(*) from task t where t.line = @id and t.completed_at is null
                 and not exists (select 1 from lease l where l.task_seq = t.seq)) as waiting,
              (select count(*) from ready where line = @id) as ready,
              (select count(*) from lease where line = @id) as inflight,
              (select rank from ready where line = @id order by rank, task_seq limit 1) as head_rank,
              (select task_seq from ready where line = @id order by rank, task_seq limit 1) as head_seq`,
    )
    .get({ id }) as LineCount;
}

function faultsOf(db: SqliteDatabase, line: Line): CounterFault[] {
  const counted = countLine(db, line.id);
  return (["waiting", "ready", "inflight", "head_rank", "head_seq"] as const)
    .filter((column) => line[column] !== counted[column])
    .map((column) => ({
      counter: `line ${line.lane}/${line.tenant}/${line.agent} ${column}`,
      stored: line[column],
      counted: counted[column],
    }));
}

function mend(db: SqliteDatabase, line: Line): void {
  const ledger = new Ledger(db);
  const counted = countLine(db, line.id);
  const lane = ledger.lane(line.lane);
  lane.waiting += counted.waiting - line.waiting;
  lane.inflight += counted.inflight - line.inflight;
  Object.assign(ledger.line(line.id), counted);
  ledger.save({ limitsChanged: true });
}

function flagFaults(db: SqliteDatabase): CounterFault[] {
  const ledger = new Ledger(db);
  const lines = db
    .prepare<Line & { startable: 0 | 1; ahead: 0 | 1 }>(`select ${LINE_COLUMNS}, startable, ahead from line`)
    .all();
  return lines.flatMap((line) => {
    const name = `line ${line.lane}/${line.tenant}/${line.agent}`;
    const startable = ledger.room(line) > 0 ? 1 : 0;
    const ahead = ledger.isAhead(line) ? 1 : 0;
    return [
      ...(line.startable === startable ? [] : [fault(`${name} startable`, line.startable, startable)]),
      ...(line.ahead === ahead ? [] : [fault(`${name} ahead`, line.ahead, ahead)]),
    ];
  });
}

function laneFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{
      name: string;
      waiting: number;
      inflight: number;
      line_waiting: number;
      line_inflight: number;
    }>(
      `select name, waiting, inflight,
              (select coalesce(sum(waiting), 0) from line where lane = name) as line_waiting,
              (select coalesce(sum(inflight), 0) from line where lane = name) as line_inflight
         from lane`,
    )
    .all()
    .flatMap((lane) => [
      ...(lane.waiting === lane.line_waiting
        ? []
        : [fault(`lane ${lane.name} waiting`, lane.waiting, lane.line_waiting)]),
      ...(lane.inflight === lane.line_inflight
        ? []
        : [fault(`lane ${lane.name} inflight`, lane.inflight, lane.line_inflight)]),
    ]);
}

function tallyFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{ counter: string; stored: number; counted: number }>(
      `select 'tally ' || tenant || ' ' || state as counter, sum(stored) as stored, sum(counted) as counted
         from (select tenant, state, tasks as stored, 0 as counted from tally
               union all select tenant, resting_state, 0, count(*) from task group by tenant, resting_state)
        group by tenant, state having sum(stored) <> sum(counted)`,
    )
    .all();
}

function fault(counter: string, stored: number, counted: number): CounterFault {
  return { counter, stored, counted };
}

import type { Run } from "../../../src/interface/schedules.ts";
import type { Edit, History } from "../history.ts";

/** A time in which a schedule is due, by its owner's wish. Seconds; at the ends of it, a moment may be due or not. */
export interface DueTime {
  readonly from: number;
  readonly until: number;
  /** Any moment of it: the others are whole steps away. */
  readonly moment: number;
  readonly everySec: number;
}

export interface Timetable {
  readonly times: readonly DueTime[];
  /** The rows of its due times, without manual runs. */
  readonly rows: readonly Run[];
  /** How often a client requested a manual run and got no response. */
  readonly strays: number;
  readonly deleted: boolean;
}

/** What the clients that made and changed each schedule know of it. In the end, all are paused or gone. */
export function timetables({ edits, runs }: History): Map<number, Timetable> {
  const found = new Map<number, Timetable>();
  for (const [id, list] of Map.groupBy(edits, ({ scheduleId }) => scheduleId)) {
    if (!list.some(({ deed }) => deed === "due")) continue;
    const forced = new Set(list.map((edit) => (edit.deed === "ran" ? edit.runId : null)));
    found.set(id, {
      times: dueTimes(list),
      rows: runs.filter((run) => run.task_id === id && !forced.has(run.id)),
      deleted: list.some(({ deed }) => deed === "deleted"),
      strays: list.filter((edit) => edit.deed === "ran" && edit.runId === null).length,
    });
  }
  return found;
}

/** Those that were deleted; nothing is left of their runs. */
export function deletedSchedules({ edits }: History): Set<number> {
  return new Set(edits.flatMap((edit) => (edit.deed === "deleted" ? [edit.scheduleId] : [])));
}

function dueTimes(edits: readonly Edit[]): DueTime[] {
  const times: DueTime[] = [];
  let last: Extract<Edit, { deed: "due" }> | null = null;
  for (const edit of edits) {
    if (edit.deed !== "due" && edit.deed !== "paused") continue;
    if (last !== null)
      times.push({ from: startOf(last), until: edit.at, moment: last.nextAt, everySec: last.everySec });
    last = edit.deed === "due" ? edit : null;
  }
  return times;
}

/** When it is due next is worked out before it is written, which may take so long that the moment has come by then. */
function startOf({ at, nextAt }: Extract<Edit, { deed: "due" }>): number {
  return Math.min(at, nextAt - 1);
}

/** The moments that are due for sure. */
export function momentsIn({ from, until, moment, everySec }: DueTime): number[] {
  const moments: number[] = [];
  const first = moment - Math.floor((moment - from - 1) / everySec) * everySec;
  for (let at = first; at < until; at += everySec) moments.push(at);
  return moments;
}

/** Whether a moment can have been due then. */
export function isDueIn({ from, until, moment, everySec }: DueTime, at: number): boolean {
  return at >= from && at <= until && (at - moment) % everySec === 0;
}

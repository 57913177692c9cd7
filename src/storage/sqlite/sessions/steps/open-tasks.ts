import type { EndedTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { SessionRow } from "../../counters/session-ledger.ts";
import { endNow } from "../../tasks/steps/cancel-all.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../../tasks/steps/end-waiting-task.ts";

type OpenTask = WaitingTask & { readonly id: string };

/** Selects the open tasks of a session from `task t`, admitted or not. */
export const OPEN_IN_SESSION = `
  t.seq in (select seq from task where session = @session and in_session = 1
            union all
            select seq from task indexed by task_outside_session
             where session = @session and in_session = 0 and completed_at is null)`;

function running(
  tx: Transaction,
  { id }: SessionRow,
  { cutoff, limit }: { cutoff: number; limit: number },
): OpenTask[] {
  return tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t indexed by task_in_session join lease l on l.task_seq = t.seq
        where t.session = ? and t.in_session = 1 and t.place <= ? order by l.token limit +?`,
    )
    .all(id, cutoff, limit);
}

/**
 * The running task that started first. If none runs: the first that waits for its retry, for a slot or in the debounce window.
 */
export function oldest(tx: Transaction, session: SessionRow): OpenTask[] {
  const [first] = running(tx, session, { cutoff: Number.MAX_SAFE_INTEGER, limit: 1 });
  if (first !== undefined) return [first];
  return tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where t.seq in (
          select * from (select seq from task indexed by task_in_session
                          where session = @session and in_session = 1 order by place limit 1)
          union all
          select * from (select seq from task indexed by task_outside_session
                          where session = @session and in_session = 0 and completed_at is null and parked = 'session'
                          order by place limit 1)
          union all
          select seq from task where seq = @debounced and resting_state = 'delayed')
        order by t.place limit 1`,
    )
    .all({ session: session.id, debounced: session.debounce_seq });
}

/** Open tasks with a position up to `cutoff`: first the running ones, then the waiting ones. */
export function openUpTo(
  tx: Transaction,
  session: SessionRow,
  { cutoff, limit }: { cutoff: number; limit: number },
): OpenTask[] {
  const held = running(tx, session, { cutoff, limit });
  const waiting = tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where ${OPEN_IN_SESSION} and t.place <= @cutoff
          and not exists (select 1 from lease l where l.task_seq = t.seq)
        order by t.place limit +@limit`,
    )
    .all({ session: session.id, cutoff, limit: limit - held.length });
  return [...held, ...waiting];
}

/** Cancels all open tasks of a session, in order of acceptance. */
export function cancelSession(tx: Transaction, session: SessionRow, error: string): EndedTask[] {
  return tx
    .prepare<OpenTask>(`select t.id, ${WAITING_COLUMNS} from task t where ${OPEN_IN_SESSION} order by t.seq`)
    .all({ session: session.id })
    .map((task) => endNow(tx, task, error));
}

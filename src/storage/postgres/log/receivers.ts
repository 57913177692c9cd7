import { IDLE_HOSTS_MAX } from "../../../model/delivery-shares.ts";
import { readSql } from "../connection/sql-file.ts";

/** Turns are counted in microseconds, so that receivers served within one millisecond have an order, too. */
export const TURNS_PER_MS = 1_000;

/** When a receiver has its turn. After the clock was set back, it must not wait until the time when it was last served. */
function turnAfter(due: string, served: string): string {
  return `greatest(${due}, least(${served}, p_now * ${TURNS_PER_MS} + ${TURNS_PER_MS - 1}))`;
}

export const RECEIVER_FUNCTIONS = readSql(new URL("./receivers.sql", import.meta.url), {
  FIRST_TURN: turnAfter(`d.due_at * ${TURNS_PER_MS}`, "r.served"),
  IDLE_HOSTS_MAX,
  NEXT_TURN: turnAfter("excluded.turn", "t.served"),
});

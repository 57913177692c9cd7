import { readSql } from "../connection/sql-file.ts";
import { isUnsettled, turnOf } from "./settle-sessions.ts";

/** How tasks get their turns in sessions: when they are inserted, and when they become ready later. */
export const TURN_FUNCTIONS = readSql(new URL("./take-turns.sql", import.meta.url), {
  IS_UNSETTLED: isUnsettled("s"),
  IS_EARLY_TURN: turnOf("t", "early"),
});

/** The server ends every statement after this time, and with it the transaction. */
export const STATEMENT_TIMEOUT_MS = 15_000;

/** For rows that do not show when they changed: a time in the far future. */
export const JUST_NOW = "9000000000000000";

/**
 * When a task `t` with lease `l` last started or ended, else when it was accepted; see `readDurably`. If its last attempt has
 * ended but the task has not, the time is not stored.
 */
export const CHANGED_AT = `coalesce(l.started_at, t.completed_at, case when t.executions > 0 then ${JUST_NOW} else t.created_at end)`;

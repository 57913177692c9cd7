import { KEYS_LOOKED_AT } from "../../storage.ts";
import { isAlone, isForWorkers } from "../connection/abilities.ts";
import { readSql } from "../connection/sql-file.ts";
import { agentLimitOf, agentRoomOf } from "../counters/counters.ts";
import { leftFor } from "../tenants/tenant-shares.ts";
import { isDeferred } from "./deferred-work.ts";

/** Whether the batch of a row `t` of `task` has no room. */
function isBatchFull(t: string): string {
  return `(${t}.batch is not null and coalesce((select b.active >= b.parallelism from batch b where b.id = ${t}.batch), false))`;
}

/**
 * `key_hold` has the holder of each key, a task that is ready or in flight. A task that asks for its key is parked as 'asking'
 * and keeps its slot in its batch. Tasks that ask for a key or release one are deferred work: `settle_keys` decides before any
 * task is claimed. sqlite/tasks/concurrency-keys.ts does the same in TypeScript.
 */
export const CONCURRENCY_KEY_FUNCTIONS = readSql(new URL("./concurrency-keys.sql", import.meta.url), {
  SESSIONS_DEFERRED: isDeferred("sessions"),
  KEYS_DEFERRED: isDeferred("keys"),
  IS_BATCH_FULL: isBatchFull("t"),
  LEFT_FOR_TENANT: leftFor("s"),
  KEYS_LOOKED_AT_WAITING: KEYS_LOOKED_AT.waiting,
  AGENT_ROOM: agentRoomOf("n", "l.per_agent"),
  AGENT_LIMIT: agentLimitOf("n", "l.per_agent"),
  IS_ALONE: isAlone("n"),
  IS_FOR_WORKERS: isForWorkers("n"),
  BATCHES_DEFERRED: isDeferred("batches"),
});

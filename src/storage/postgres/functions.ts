import { createHash } from "node:crypto";
import type { ClientBase } from "pg";
import { CANCEL_FUNCTIONS } from "./cancel-tasks.ts";
import { CLAIM_FUNCTIONS } from "./claim-tasks.ts";
import { COUNTER_FUNCTIONS } from "./counters.ts";
import { ENDING_FUNCTIONS } from "./end-attempts.ts";
import { FINISH_AND_CLAIM_FUNCTIONS } from "./finish-and-claim.ts";
import { INSERT_FUNCTIONS } from "./insert-tasks.ts";
import { LIMIT_FUNCTIONS } from "./lanes-and-agents.ts";
import { NODE_FUNCTIONS } from "./nodes.ts";
import { PROMOTE_FUNCTIONS } from "./promote-due.ts";
import { PRUNE_FUNCTIONS } from "./prune.ts";
import { RECOUNT_FUNCTIONS } from "./recount.ts";
import { RESCUE_FUNCTIONS } from "./rescue-tasks.ts";
import { RETRY_FUNCTIONS } from "./retry-task.ts";

const SOURCE = [
  COUNTER_FUNCTIONS,
  ENDING_FUNCTIONS,
  CLAIM_FUNCTIONS,
  FINISH_AND_CLAIM_FUNCTIONS,
  INSERT_FUNCTIONS,
  CANCEL_FUNCTIONS,
  RETRY_FUNCTIONS,
  PROMOTE_FUNCTIONS,
  RESCUE_FUNCTIONS,
  PRUNE_FUNCTIONS,
  NODE_FUNCTIONS,
  LIMIT_FUNCTIONS,
  RECOUNT_FUNCTIONS,
].join("\n");

/**
 * Operations run as functions inside the database: one round trip each, and the gate is never held while a process is
 * busy with something else. They live in a schema named for their text, so that nodes of two versions each call their
 * own.
 */
export const FUNCTION_SCHEMA = `rota_fn_${createHash("sha256").update(SOURCE).digest("hex").slice(0, 12)}`;

/** Function schemas that no known node uses are dropped when nobody has opened them for this long. */
const UNUSED_DAYS = 1;

/** Installs the functions of this version, and removes those of versions that are no longer around. */
export async function installFunctions(client: ClientBase): Promise<void> {
  await client.query("begin");
  try {
    const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [
      FUNCTION_SCHEMA,
    ]);
    if (rowCount === 0) {
      await client.query(`create schema ${FUNCTION_SCHEMA}`);
      await client.query(`set local search_path = ${FUNCTION_SCHEMA}, rota`);
      // Functions name each other in any order.
      await client.query("set local check_function_bodies = off");
      await client.query(SOURCE);
    }
    await client.query(`comment on schema ${FUNCTION_SCHEMA} is '${new Date().toISOString()}'`);
    await client.query(DROP_UNUSED);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

const DROP_UNUSED = `
do $$
declare
  v_schema text;
begin
  for v_schema in
    select nspname from pg_namespace
     where nspname like 'rota\\_fn\\_%' and nspname not in (select functions from rota.node)
       and obj_description(oid, 'pg_namespace')::timestamptz < now() - interval '${UNUSED_DAYS} day'
  loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$`;

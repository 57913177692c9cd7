import type { PoolConfig } from "pg";
import { FUNCTION_SCHEMA } from "./functions.ts";

const CONNECT_TIMEOUT_MS = 5000;
/** An idle connection sends a packet after this time, so that firewalls keep it open and a lost one is noticed. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Settings of every connection. The timeouts end a statement that would hold the write lock forever. Plans are generic:
 * PostgreSQL would plan every call with a single task anew, which takes longer than the call. Sequential scans are off because
 * plans are made while tables are small, and must still be good when tables are large. Bitmap scans are off because pages of a
 * list are short: where the statistics promise few rows, the planner would read all rows of a tenant and sort them.
 */
export const CONNECTION_SETTINGS = {
  search_path: `${FUNCTION_SCHEMA},rota`,
  statement_timeout: "15s",
  lock_timeout: "10s",
  idle_in_transaction_session_timeout: "10s",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
  client_min_messages: "warning",
};

export function connectionConfig(url: string): PoolConfig {
  const address = new URL(url);
  // `options` in the URL would replace ours, so both are passed. Where they disagree, ours win.
  const given = address.searchParams.get("options") ?? "";
  address.searchParams.delete("options");
  const own = Object.entries(CONNECTION_SETTINGS).map(([name, value]) => `-c ${name}=${value}`);
  return {
    connectionString: address.href,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "rota",
    options: [given, ...own].join(" ").trim(),
  };
}

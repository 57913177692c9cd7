import type { Counter } from "../idle-cost.ts";
import { connect } from "./database.ts";

/** Counts what the server committed in the database of this URL, asking from another one. */
export async function countTransactions(url: string, serverUrl: string): Promise<Counter> {
  const client = await connect(serverUrl);
  const database = new URL(url).pathname.slice(1);
  return {
    async read() {
      const { rows } = await client.query<{ commits: string }>(
        "select xact_commit as commits from pg_stat_database where datname = $1",
        [database],
      );
      return Number(rows[0]?.commits);
    },
    close: () => client.end(),
  };
}

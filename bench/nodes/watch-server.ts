import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { connect } from "../postgres/database.ts";

/** The advisory lock that every change takes first; see the decision about one writer at a time. */
const WRITE_LOCK = 7682;
/** Often enough to see a few hundred moments, and seldom enough not to be what is measured. */
const LOOK_EVERY_MS = 20;

export interface Watched {
  /** The share of moments in which a node held the write lock. */
  readonly writeLockHeld: number;
  /** How many connections waited at it, on average. */
  readonly writeLockWaiting: number;
  /** What else connections waited for, on average, the most frequent first. */
  readonly otherWaits: readonly { readonly what: string; readonly connections: number }[];
  readonly walBytes: number;
  readonly transactions: number;
}

/** Looks again and again at what the connections to a database do, from another one, until `stop` is called. */
export async function watchServer(url: string, serverUrl: string): Promise<{ stop(): Promise<Watched> }> {
  const database = new URL(url).pathname.slice(1);
  const client = await connect(serverUrl);
  const before = await totals(client, database);
  let looks = 0;
  let held = 0;
  const waits = new Map<string, number>();
  let stopped = false;
  const watching = (async () => {
    while (!stopped) {
      const { rows } = await client.query<{ held: boolean; waits: readonly string[] }>({
        name: "look",
        text: LOOK,
        values: [database, WRITE_LOCK],
      });
      looks += 1;
      if (rows[0]?.held) held += 1;
      for (const wait of rows[0]?.waits ?? []) waits.set(wait, (waits.get(wait) ?? 0) + 1);
      await delay(LOOK_EVERY_MS);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await watching;
      const after = await totals(client, database);
      await client.end();
      const writeLockWaiting = (waits.get(AT_THE_WRITE_LOCK) ?? 0) / looks;
      waits.delete(AT_THE_WRITE_LOCK);
      const otherWaits = [...waits]
        .map(([what, seen]) => ({ what, connections: seen / looks }))
        .sort((a, b) => b.connections - a.connections);
      return {
        writeLockHeld: held / looks,
        writeLockWaiting,
        otherWaits,
        walBytes: after.wal - before.wal,
        transactions: after.transactions - before.transactions,
      };
    },
  };
}

const AT_THE_WRITE_LOCK = "Lock advisory";

// Connections that compute wait for nothing, and are left out.
const LOOK = `
select exists (select 1 from pg_locks l join pg_database d on d.oid = l.database
                where d.datname = $1 and l.locktype = 'advisory' and l.objid = $2 and l.granted) as held,
       array(select wait_event_type || ' ' || wait_event from pg_stat_activity
              where datname = $1 and state = 'active' and wait_event is not null) as waits`;

async function totals(client: Client, database: string): Promise<{ wal: number; transactions: number }> {
  const { rows } = await client.query<{ wal: string; transactions: string }>(
    `select pg_current_wal_lsn() - '0/0'::pg_lsn as wal,
            (select xact_commit from pg_stat_database where datname = $1) as transactions`,
    [database],
  );
  return { wal: Number(rows[0]?.wal), transactions: Number(rows[0]?.transactions) };
}

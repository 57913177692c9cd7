import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";

/** Soon enough to count for nothing, seldom enough not to be in the way of the last that are written. */
const PAUSE_MS = 2;

/** Asks until the query finds nothing: some do not say when they have written down an end. */
export async function untilNoRow(client: Client, query: string): Promise<void> {
  for (;;) {
    const { rowCount } = await client.query(`${query} limit 1`);
    if (rowCount === 0) return;
    await sleep(PAUSE_MS);
  }
}

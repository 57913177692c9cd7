import { readSql } from "../connection/sql-file.ts";

/** Held by the exchange that is at work. Exchanges do not wait for the write lock behind one another. */
const EXCHANGE_LOCK = 7684;
/** How many requests one step does: the lock is held longer for each. */
const REQUESTS_MAX = 15;
/** Larger results are not written to a request first: their exchange waits for its turn. */
const REQUEST_BYTES_MAX = 65_536;

export const EXCHANGE_FUNCTIONS = readSql(new URL("./exchange.sql", import.meta.url), {
  EXCHANGE_LOCK,
  REQUESTS_MAX,
  REQUEST_BYTES_MAX,
});

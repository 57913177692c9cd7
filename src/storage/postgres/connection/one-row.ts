/**
 * One row of a table by its key, beside another row that names it: `cross join lateral` this. Joined in any other way, the
 * planner may read a whole table while that is small, and keep to it when it is not.
 */
export function oneRow(columns: string, table: string, key: string): string {
  return `lateral (select ${columns} from ${table} where ${key} offset 0)`;
}

/** Where that row stands: whoever changes it goes there by this address, for the same reason. */
export function addressOf(table: string, key: string): string {
  return `(select a.ctid from ${table} a where a.${key})`;
}

/**
 * Reads one row of a table by its key, beside another row that names it. Use it after `cross join`. For any other join the
 * planner may read the whole table while it is small, and keep that plan when it is large.
 */
export function oneRow(columns: string, table: string, key: string): string {
  return `lateral (select ${columns} from ${table} where ${key} offset 0)`;
}

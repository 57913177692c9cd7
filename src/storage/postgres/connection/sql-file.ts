import { readFileSync } from "node:fs";

/**
 * Reads functions from the `.sql` file beside their `.ts` file. `:NAME` stands for the value of that name: a constant of the
 * model, or an expression that several functions share.
 *
 * Two forms recur in these files. `cross join lateral (select … where key = … offset 0)` reads one row by its key, and
 * `(select a.ctid from … a where a.key = …)` is the address by which an update finds a row. For any other join the planner may
 * read the whole table while it is small, and keep that plan when it is large.
 */
export function readSql(file: URL, values: Readonly<Record<string, string | number>> = {}): string {
  const unused = new Set(Object.keys(values));
  const sql = readFileSync(file, "utf8").replace(PLACEHOLDER, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${file.pathname} names :${name}, which has no value`);
    unused.delete(name);
    return String(value);
  });
  if (unused.size > 0) throw new Error(`${file.pathname} does not use ${[...unused].join(", ")}`);
  return sql;
}

/** Not `::type`, and not a time of day in a string. */
const PLACEHOLDER = /(?<![:\w]):([A-Z][A-Z0-9_]*)\b/g;

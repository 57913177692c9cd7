import Sqlite from "better-sqlite3";
import type { Counter } from "../idle-cost.ts";

/** Counts every statement that any connection of this process runs. */
export function countStatements(): Counter {
  const db = new Sqlite(":memory:");
  const prototype = Object.getPrototypeOf(db.prepare("select 1")) as Record<string, Run>;
  db.close();
  let count = 0;
  const undo = ["run", "get", "all", "iterate"].map((name) => {
    const run = prototype[name] as Run;
    prototype[name] = function (this: unknown, ...values) {
      count += 1;
      return run.apply(this, values);
    };
    return () => {
      prototype[name] = run;
    };
  });
  return {
    read: async () => count,
    close: async () => {
      for (const restore of undo) restore();
    },
  };
}

type Run = (this: unknown, ...values: unknown[]) => unknown;

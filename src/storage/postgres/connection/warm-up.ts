import { DEFAULT_PRIORITY } from "../../../model/priority.ts";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { Abilities } from "../../storage.ts";
import type { Statement } from "./database.ts";
import { readSql } from "./sql-file.ts";

/**
 * A connection plans each statement of a function when it first runs it: the first insert, claim and finish of a connection take
 * 6–13 ms longer than the next. So a node lets each of its connections accept tasks, start and end two, of which one is held ahead, in a
 * transaction that is undone, before work arrives.
 */
export function warmUpStatement({
  node,
  lane,
  abilities,
}: {
  node: string;
  lane: string;
  abilities: Abilities | undefined;
}): Statement {
  const kind = abilities?.kinds[0] ?? "custom";
  const form = {
    tenant: DEFAULT_TENANT,
    agent: node,
    lane,
    kind,
    priority: DEFAULT_PRIORITY,
    max_retries_if_lost: 1,
    preemptible: false,
  };
  return {
    text: "select warm_up($1, $2, $3, $4)",
    values: [node, lane, `[${JSON.stringify(form)}]`, JSON.stringify({ work: { kind } })],
  };
}

export const WARM_UP_FUNCTIONS = readSql(new URL("./warm-up.sql", import.meta.url));

import { NEWCOMER_LEAD } from "../../../model/lane.ts";
import { isAlone, newLabel, queueKind } from "../connection/abilities.ts";
import { readSql } from "../connection/sql-file.ts";
import { TENANTS_MAX } from "../tenants/share-out.ts";

export const AGENT_QUEUE_FUNCTIONS = readSql(new URL("./create-agent-queues.sql", import.meta.url), {
  NEWCOMER_LEAD,
  IS_ALONE: isAlone("j"),
  QUEUE_KIND: queueKind("j", "s.served"),
  NEW_LABEL: newLabel("x"),
  TENANTS_MAX,
});

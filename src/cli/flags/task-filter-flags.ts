import type { Command } from "commander";
import type { BulkFilter } from "../../interface/bulks.ts";
import { numberFlag, pastMomentFlag } from "./flag-values.ts";
import { given } from "./given.ts";
import { serialId } from "./serial-id.ts";

export interface TaskFilterFlags {
  readonly agent?: string;
  readonly state?: string;
  readonly priority?: string;
  readonly batch?: string;
  readonly session?: string;
  readonly lane?: string;
  readonly schedule?: string;
  readonly query?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Flags that select tasks, for lists and bulk actions. */
export function withTaskFilterOptions(command: Command): Command {
  return command
    .option("--agent <id>", "of this agent")
    .option("--state <states>", "in one of these states, separated by commas")
    .option("--priority <priority>", "of this priority, a number or a name; critical is 0 and below")
    .option("--batch <id>", "of this batch")
    .option("--session <key>", "of this session")
    .option("--lane <name>", "in this lane")
    .option("--schedule <id>", "of this schedule")
    .option("-q, --query <text>", "with this id or beginning of an id, batch id, or key in a batch")
    .option("--from <when>", "created then or later: a time, or a span back from now like 2h")
    .option("--to <when>", "created before that");
}

/** Values are not checked here: the server refuses wrong ones with a message. */
export function toTaskFilter(flags: TaskFilterFlags): BulkFilter {
  const { agent, state, priority, batch, session, lane, schedule, query, from, to } = flags;
  const now = Date.now();
  return given({
    agentId: agent,
    state,
    priority: priority === undefined ? undefined : numberFlag(priority),
    batchId: batch,
    sessionKey: session,
    lane,
    scheduleId: schedule === undefined ? undefined : serialId("schedule", schedule),
    q: query,
    from: from === undefined ? undefined : pastMomentFlag("--from", from, now),
    to: to === undefined ? undefined : pastMomentFlag("--to", to, now),
  }) as BulkFilter;
}

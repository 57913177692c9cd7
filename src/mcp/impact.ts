import type { ScheduledTask } from "../interface/schedules.ts";
import type { Session } from "../interface/sessions.ts";
import type { CreatedBy } from "../model/provenance.ts";
import type { Task } from "../model/task.ts";
import type { ToolCall } from "./tool.ts";

type Maker = Pick<ToolCall, "caller" | "client">;

/** Whether the same client made a task by these tools, with the same key: it may end it without a question. */
export function isOwnTask({ createdBy }: Task, maker: Maker): boolean {
  return createdBy !== undefined && isSameMaker(createdBy, maker);
}

/** The same for a schedule. */
export function isOwnSchedule({ created_by: createdBy }: ScheduledTask, maker: Maker): boolean {
  if (createdBy === undefined) return false;
  return isSameMaker({ ...createdBy, keyId: createdBy.key_id }, maker);
}

function isSameMaker({ via, keyId, client }: Omit<CreatedBy, "agentId">, maker: Maker): boolean {
  return via === "mcp" && keyId === maker.caller.keyId && client === (maker.client ?? undefined);
}

export function sessionImpact({ running, queued }: Session): string {
  return `running: ${running}, waiting: ${queued}`;
}

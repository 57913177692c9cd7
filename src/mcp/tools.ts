import type { McpBackend, McpCaller } from "./backend.ts";
import { argumentsSchema } from "./json-schema.ts";
import type { Tool, ToolAccess } from "./tool.ts";
import { change } from "./tools/change.ts";
import { explain } from "./tools/explain.ts";
import { get } from "./tools/get.ts";
import { list } from "./tools/list.ts";
import { say } from "./tools/say.ts";
import { schedule } from "./tools/schedule.ts";
import { submit } from "./tools/submit.ts";

/** All tools, in the order in which every client gets them. */
export const TOOLS: readonly Tool[] = [submit, get, explain, list, schedule, change, say];

export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name);

/** A tool as a client sees it. */
export function listedTool({ name, description, annotations, fields, output }: Tool) {
  return {
    name,
    description,
    inputSchema: argumentsSchema(fields),
    ...(output === undefined ? {} : { outputSchema: output }),
    annotations,
  };
}

/** Whether the role of the caller may call tools with this access. */
export async function isAllowed(access: ToolAccess, backend: McpBackend): Promise<boolean> {
  const { caller } = backend;
  if (access === "read") return true;
  if (caller.role === "viewer") return false;
  return access === "submit" || maySchedule(caller, backend);
}

/** An agent makes schedules only if its definition says so. */
async function maySchedule({ agentId }: McpCaller, backend: McpBackend): Promise<boolean> {
  if (agentId === null) return true;
  const agent = await backend
    .rota(null)
    .agents.get(agentId)
    .catch(() => null);
  return agent?.writs === true;
}

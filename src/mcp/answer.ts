import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";

/** The answer of a tool; with `resultType: "task"`, the handle of a task of the tasks extension. */
export type ToolAnswer = CallToolResult | InputRequiredResult;

export function text(content: string): CallToolResult {
  return { content: [{ type: "text", text: content }] };
}

/** An answer that is an error: nothing was done. */
export function errorText(content: string): CallToolResult {
  return { ...text(content), isError: true };
}

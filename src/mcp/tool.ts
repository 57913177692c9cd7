import type { ToolAnnotations } from "@modelcontextprotocol/server";
import { type Fields, isObject, withoutNulls } from "../model/input/field-checks.ts";
import { number } from "../model/input/kinds.ts";
import { readFields } from "../model/input/read-fields.ts";
import { type FieldTable, type InputOf, optional } from "../model/input/schema.ts";
import type { Task } from "../model/task.ts";
import type { ToolAnswer } from "./answer.ts";
import type { McpBackend, McpCaller, McpChange, McpRota } from "./backend.ts";
import type { Confirmation, Question } from "./confirmation.ts";
import type { JsonSchema } from "./json-schema.ts";

/** One call of a tool. */
export interface ToolCall {
  readonly caller: McpCaller;
  /** The name and version that the client gave of itself; null: none. */
  readonly client: string | null;
  readonly rota: McpRota;
  readonly backend: McpBackend;
  /** Fires when the client no longer waits for the answer. */
  readonly signal: AbortSignal;
  /** Whether the request says that the client knows the tasks extension. */
  readonly knowsTasks: boolean;
  /** Call it once for each change that was made. */
  changed(change: McpChange): void;
  /** Asks the person behind the client before something is ended or deleted. */
  confirm(question: Question): Promise<Confirmation>;
}

/** What a caller must be allowed to do in Rota to call a tool: read, submit tasks, or make schedules. */
export type ToolAccess = "read" | "submit" | "schedule";

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly access: ToolAccess;
  readonly annotations: ToolAnnotations;
  readonly fields: FieldTable;
  /** The arguments that the library calls otherwise: its name → the name here. Error messages of the library get the name here. */
  readonly names?: Readonly<Record<string, string>>;
  readonly output?: JsonSchema & { readonly type: "object" };
  /** Checks arguments. Throws a `RotaError` that names them as they are named here. */
  read(given: unknown): Fields;
  /** Takes what `read` returned. Throws a `RotaError`. */
  run(args: Fields, call: ToolCall): Promise<ToolAnswer>;
}

interface ToolDefinition<Table extends FieldTable> extends Omit<Tool, "fields" | "read" | "run"> {
  readonly fields: Table;
  run(args: InputOf<Table>, call: ToolCall): Promise<ToolAnswer>;
}

/** Makes a tool whose arguments are checked before it runs. An argument that is null counts as left out. */
export function defineTool<const Table extends FieldTable>(definition: ToolDefinition<Table>): Tool {
  const { fields, run, ...tool } = definition;
  const schema = { noun: `call of \`${tool.name}\``, fields };
  return {
    ...tool,
    fields,
    read(given) {
      const args: Fields = isObject(given) ? withoutNulls(given) : {};
      readFields(schema, args);
      return args;
    },
    run: (args, call) => run(args as InputOf<Table>, call),
  };
}

/** MCP clients give up a call after 60 seconds: the answer has to be there before. */
const WAIT_S = { min: 0, max: 50, unit: "seconds" } as const;

/** For tools that can wait for the end of a task. */
export const waitS = optional(number(WAIT_S), { description: "Wait this long for the end" });

/** A task once it has ended, or as it is when the time is over. */
export async function waitedTask(taskId: string, seconds: number, call: ToolCall): Promise<Task> {
  const { backend, rota, signal } = call;
  return seconds === 0 ? rota.tasks.get(taskId) : backend.wait(taskId, { seconds, signal });
}

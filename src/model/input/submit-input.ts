import type { TaskState } from "../task-state.ts";
import type { FieldTable, InputOf } from "./schema.ts";
import type { COMMON_FIELDS, KIND_FIELDS } from "./task-schema.ts";

/**
 * The input of a new task: exactly one of `action`, `instruction`, `message` and `payload`, and the fields that all four kinds
 * have. `task-schema.ts` describes the fields.
 *
 * @example
 * { agentId: "research", instruction: "Summarise today's papers", priority: "high", timeout: 60_000 }
 */
export type SubmitInput = ActionInput | InstructionInput | MessageInput | CustomInput;

type Work = typeof KIND_FIELDS;
type MainField = "action" | "instruction" | "message" | "payload";

/** The fields of one kind, of which `Main` is required. The main fields of the other kinds must be left out. */
type InputWith<Fields extends FieldTable, Main extends keyof InputOf<Fields>> = InputOf<
  typeof COMMON_FIELDS
> &
  InputOf<Fields> &
  Required<Pick<InputOf<Fields>, Main>> & { readonly [Field in Exclude<MainField, Main>]?: never };

/** An action in a browser tab: lane `tasks`, not retried, `deadline` 60 s after it could first start. */
export type ActionInput = InputWith<Work["action"], "action"> & { readonly agentId: string };

/** An instruction to an agent: lane `tasks`, 3 retries, `timeout` 120 000. */
export type InstructionInput = InputWith<Work["instruction"], "instruction">;

/** A message to an agent: lane `main`, retried only if its node is lost, `timeout` 120 000. */
export type MessageInput = InputWith<Work["message"], "message">;

/** Any JSON for your own executor: lane `tasks`, not retried, `timeout` 120 000. */
export type CustomInput = InputWith<Work["custom"], "payload">;

/** The response to a submission. */
export interface SubmittedTask {
  readonly taskId: string;
  readonly state: TaskState;
  /** Its position among the agent's waiting tasks, counted from 1; 0: it cannot start yet. */
  readonly position: number;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Such as that no live node can execute it. Left out: there are none. */
  readonly warnings?: readonly string[];
}

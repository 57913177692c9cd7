import { boolean, name } from "../../model/input/kinds.ts";
import { optional, required } from "../../model/input/schema.ts";
import { TASK_OUTPUT, taskAnswer } from "../task-answer.ts";
import { defineTool, waitedTask, waitS } from "../tool.ts";

export const taskIdField = required(name("the id of a task"), { description: "tsk_…" });

export const get = defineTool({
  name: "get",
  description: "A task with its result",
  access: "read",
  annotations: { readOnlyHint: true },
  fields: {
    id: taskIdField,
    waitS,
    full: optional(boolean(), { description: "32 KiB of the result, not 2" }),
  },
  output: TASK_OUTPUT,
  async run({ id, waitS = 0, full = false }, call) {
    return taskAnswer(await waitedTask(id, waitS, call), { full });
  },
});

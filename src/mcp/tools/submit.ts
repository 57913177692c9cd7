import { boolean } from "../../model/input/kinds.ts";
import { optional, required } from "../../model/input/schema.ts";
import type { SubmitInput } from "../../model/input/submit-input.ts";
import { COMMON_FIELDS, KIND_FIELDS } from "../../model/input/task-schema.ts";
import { leftText } from "../../model/text/left-text.ts";
import { text } from "../answer.ts";
import { TASK_OUTPUT, taskAnswer } from "../task-answer.ts";
import { createdTask } from "../tasks-extension.ts";
import { defineTool, waitedTask, waitS } from "../tool.ts";
import { harmless, nameText, quoteField } from "../untrusted.ts";

export const submit = defineTool({
  name: "submit",
  description: "Submit a task to an agent. It is stored before the response",
  access: "submit",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  fields: {
    message: required(KIND_FIELDS.message.message, { description: "What to do" }),
    agent: optional(COMMON_FIELDS.agentId, { description: "Default: index" }),
    runAt: optional(COMMON_FIELDS.runAt, { description: "Not before" }),
    priority: optional(COMMON_FIELDS.priority, { description: "Lower first; normal is 2" }),
    session: optional(COMMON_FIELDS.sessionKey, { description: "Conversation: tasks in order" }),
    dependsOn: optional(COMMON_FIELDS.dependsOn, { description: "Ids of tasks to be done before" }),
    idempotencyKey: optional(COMMON_FIELDS.idempotencyKey, { description: "Same key: same task, for 24 h" }),
    waitS,
    dryRun: optional(boolean(), { description: "Only check; store nothing" }),
  },
  output: { ...TASK_OUTPUT, required: ["state"] },
  async run({ agent, session, waitS = 0, dryRun = false, ...rest }, call) {
    const { rota, changed } = call;
    const input: SubmitInput = {
      ...rest,
      ...(agent === undefined ? {} : { agentId: agent }),
      ...(session === undefined ? {} : { sessionKey: session }),
    };
    if (dryRun) {
      const { task, left } = await rota.tasks.dryRun(input);
      const { state, agentId, lane, priority, runAt, deadline, timeout } = task;
      const line = `Dry run, nothing stored: would be ${state} for agent ${nameText(agentId)} in lane ${nameText(lane)}: ${quoteField(rest.message, 60)}`;
      const planned = { dryRun: true, state, agentId, lane, priority, runAt, deadline, timeout, left };
      return { ...text([line, ...leftText(left)].join("\n")), structuredContent: planned };
    }
    const submitted = await rota.tasks.submit(input);
    const { taskId, warnings = [] } = submitted;
    changed({ tool: "submit", subject: taskId, isChosen: false });
    if (waitS > 0 && call.knowsTasks) return createdTask(taskId, call);
    if (waitS > 0) return taskAnswer(await waitedTask(taskId, waitS, call), { warnings });
    const line = `${taskId} ${submitted.state}, position ${submitted.position}`;
    return { ...text([line, ...warnings.map(harmless)].join("\n")), structuredContent: { ...submitted } };
  },
});

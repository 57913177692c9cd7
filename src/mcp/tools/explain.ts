import { text } from "../answer.ts";
import { TASK_OUTPUT } from "../task-answer.ts";
import { defineTool } from "../tool.ts";
import { harmless } from "../untrusted.ts";
import { taskIdField } from "./get.ts";

/** A task may wait for a hundred others. */
const REASONS_MAX = 15;

export const explain = defineTool({
  name: "explain",
  description: "Why a task has not started or ended",
  access: "read",
  annotations: { readOnlyHint: true },
  fields: { id: taskIdField },
  output: TASK_OUTPUT,
  async run({ id }, { rota }) {
    const explanation = await rota.tasks.explain(id);
    const { taskId, state, since, position, ahead } = explanation;
    const reasons = explanation.reasons
      .slice(0, REASONS_MAX)
      .map((reason) => ({ ...reason, message: harmless(reason.message) }));
    const hidden = explanation.reasons.length - reasons.length;
    const more = hidden === 0 ? [] : [`[… ${hidden} more: GET /v1/tasks/${taskId}/explain has all]`];
    const place = position === 0 ? "" : `, position ${position}, ${ahead.length} listed ahead`;
    const why =
      reasons.length === 0
        ? ["Nothing holds it."]
        : reasons.map(
            ({ code, message, until }) => `- ${message} (${code}${until ? `, until ${until}` : ""})`,
          );
    const lines = [`${taskId} ${state} since ${since}${place}`, ...why, ...more];
    return { ...text(lines.join("\n")), structuredContent: { ...explanation, reasons } };
  },
});

import type { SessionMessage } from "../../interface/sessions.ts";
import { RotaError } from "../../model/errors.ts";
import { invalidField } from "../../model/input/field-checks.ts";
import { sessionKey } from "../../model/input/kinds.ts";
import { optional, required } from "../../model/input/schema.ts";
import { isStopWord, MESSAGE } from "../../model/input/session-input.ts";
import { text } from "../answer.ts";
import { sessionImpact } from "../impact.ts";
import { taskAnswer } from "../task-answer.ts";
import { createdTask } from "../tasks-extension.ts";
import { defineTool, type ToolCall, waitedTask, waitS } from "../tool.ts";
import { harmless, quoteField } from "../untrusted.ts";

export const say = defineTool({
  name: "say",
  description: "Send a message to a session, a conversation with an agent",
  access: "submit",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  names: { key: "session" },
  fields: {
    session: required(sessionKey(), { description: "Any name" }),
    message: required(MESSAGE.fields.message, { description: "The text" }),
    mode: optional(MESSAGE.fields.mode, { description: "interrupt ends what runs and waits" }),
    waitS,
  },
  async run({ session, message, mode, waitS = 0 }, call) {
    const { rota, changed } = call;
    if (isStopWord(message)) {
      throw invalidField("message", "`message` must not be a stop word: call change with what: stop");
    }
    const confirmation = await confirmInterrupt(session, mode, call);
    if (!confirmation.go) return confirmation.answer;
    const input: SessionMessage = { message, ...(mode === undefined ? {} : { mode }) };
    const sent = await rota.sessions.send(session, input);
    if (sent.taskId === undefined) throw new Error("A message that is no stop word has a task.");
    const { taskId, state, merged, warnings = [] } = sent;
    changed({ tool: "say", subject: session, isChosen: true });
    if (waitS > 0 && call.knowsTasks) return createdTask(taskId, call);
    if (waitS > 0) return taskAnswer(await waitedTask(taskId, waitS, call), { warnings });
    return text(
      [
        `${taskId} ${state}${merged ? ", merged with the message before" : ""}`,
        ...warnings.map(harmless),
      ].join("\n"),
    );
  },
});

/** Without a mode, that of the session counts. An agent interrupts only sessions of its own. */
async function confirmInterrupt(session: string, mode: SessionMessage["mode"], call: ToolCall) {
  const go = { go: true } as const;
  const mayInterrupt = mode === undefined || mode === "interrupt";
  if (!mayInterrupt || call.caller.agentId !== null) return go;
  const found = await call.rota.sessions.get(session).catch((error) => {
    if (error instanceof RotaError && error.code === "not_found") return null;
    throw error;
  });
  if (found === null || found.running + found.queued === 0) return go;
  if ((mode ?? found.mode) !== "interrupt") return go;
  return call.confirm({
    id: session,
    impact: `Interrupt session ${quoteField(session)}: all its tasks end, ${sessionImpact(found)}.`,
    confirm: undefined,
    instead:
      "This client cannot ask a person: call change with what: stop first, or say it with mode: queue.",
  });
}

import { insteadOf, invalidField } from "./field-checks.ts";
import { agentId, sessionKey } from "./kinds.ts";
import { conversationId } from "./schedule-schema.ts";
import { type Kind, optional, required, type Schema } from "./schema.ts";

/** `/schedule` lines of an agent. */
export const WRITS = {
  name: "WritRequest",
  noun: "request",
  description: "What an agent asks for.",
  fields: {
    agent: optional(agentId(), {
      description: "The agent that has these schedules. It sees and changes only its own.",
      default: "`index`",
    }),
    session_key: optional(sessionKey(), {
      description: "The session that this was written in: the runs of what it schedules are part of it.",
    }),
    conversation_id: optional(conversationId(), {
      description:
        "The conversation that this was written in, as the agent's side knows it: runs return there.",
    }),
    text: required(writText(), {
      description:
        "Its lines that begin with `/schedule` are carried out, one after the other: 50 at most, in 65536 characters.",
    }),
  },
  examples: [
    { agent: "research", text: "/schedule in 1 hour: review the deploy" },
    { text: "/schedule every monday at 09:00: sum up\n/schedule list" },
    { text: "/schedule pause 42\n/schedule cancel 43" },
    { text: "/schedule in 1 hour: ask again", session_key: "chat:42", conversation_id: "c-42" },
  ],
} as const satisfies Schema;

/** Far longer than a response of a model that contains writs. */
const WRIT_TEXT_LENGTH_MAX = 65_536;

function writText(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      if (typeof value !== "string") {
        throw invalidField(
          field,
          `\`${field}\` must be a text with lines like /schedule list${insteadOf(value)}`,
        );
      }
      if (value.length <= WRIT_TEXT_LENGTH_MAX) return value;
      throw invalidField(
        field,
        `\`${field}\` has ${value.length} characters, and may have ${WRIT_TEXT_LENGTH_MAX}`,
      );
    },
  };
}

import {
  type ClientCapabilities,
  inputRequired,
  inputResponse,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { errorText, type ToolAnswer, text } from "./answer.ts";
import { quoteKey } from "./untrusted.ts";

/** A question before something is ended or deleted. */
export interface Question {
  /** What is to be confirmed: the id that `confirm` must repeat. */
  readonly id: string;
  /** What would happen, with figures; the same text as long as nothing has changed. */
  readonly impact: string;
  /** The argument of the call; undefined: left out. */
  readonly confirm: string | undefined;
  /** What the model is to do if the client cannot ask. */
  readonly instead?: string;
}

/** `go`: do it. Otherwise the answer of the call. */
export type Confirmation = { readonly go: true } | { readonly go: false; readonly answer: ToolAnswer };

/** What was shown to the person, which the client sends back with the reply. */
export interface ShownQuestion {
  readonly id: string;
  readonly impact: string;
}

export interface AskOptions {
  readonly context: ServerContext;
  readonly capabilities: ClientCapabilities | undefined;
  readonly codec: RequestStateCodec<ShownQuestion>;
}

const KEY = "confirm";

/**
 * Asks the person where the client can. Elsewhere the model must repeat the id, after an answer has shown it the impact. Nothing is
 * kept here between the two calls: a client that never replies takes nothing.
 */
export async function ask(question: Question, options: AskOptions): Promise<Confirmation> {
  return canElicit(options.capabilities) ? askPerson(question, options) : askModel(question);
}

/** Capabilities without a mode mean forms. */
function canElicit(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation;
  if (elicitation === undefined) return false;
  return elicitation.form !== undefined || elicitation.url === undefined;
}

async function askPerson({ id, impact }: Question, { context, codec }: AskOptions): Promise<Confirmation> {
  const reply = inputResponse(context.mcpReq.inputResponses, KEY);
  const shown = context.mcpReq.requestState<ShownQuestion>();
  const isReply = reply.kind === "elicit" && shown !== undefined;
  if (isReply && (reply.action !== "accept" || reply.content?.[KEY] !== true)) {
    return { go: false, answer: errorText("Declined: nothing was done.") };
  }
  if (isReply && shown.id === id && shown.impact === impact) return { go: true };
  const changed = isReply ? "This has changed since you were asked. " : "";
  return {
    go: false,
    answer: inputRequired({
      inputRequests: {
        [KEY]: inputRequired.elicit({
          message: changed + impact,
          requestedSchema: {
            type: "object",
            properties: { [KEY]: { type: "boolean", title: "Do it" } },
            required: [KEY],
          },
        }),
      },
      requestState: await codec.mint({ id, impact }, context),
    }),
  };
}

function askModel({ id, impact, confirm, instead }: Question): Confirmation {
  if (confirm === id && instead === undefined) return { go: true };
  const how = instead ?? `To do it, call again with confirm: ${quoteKey(id)}.`;
  return { go: false, answer: text(`Nothing was done yet. ${impact} ${how}`) };
}

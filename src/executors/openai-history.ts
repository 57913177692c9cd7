import { isObject } from "../model/input/field-checks.ts";
import type { Task } from "../model/task.ts";
import type { Turn } from "../model/turn.ts";
import type { ExecutorContext } from "./executor.ts";
import type { ModelSettings } from "./model-settings.ts";

/** How many turns are sent by default. */
const DEFAULT_HISTORY = 20;
/** The tokens of a message besides its text. */
const MESSAGE_TOKENS = 4;
/** A token is three to four bytes of English, and about a character of Chinese, which is three bytes. */
const TOKEN_BYTES = 3;
/** The share of the context window for the answer, if the configuration does not limit its length. */
const ANSWER_SHARE = 0.25;

export interface HistoryMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/**
 * The earlier turns of the session, as messages for the model: as many as the configuration allows and as fit into the context
 * window beside the current work. Without a session it reads nothing.
 */
export async function readHistory(
  task: Task,
  asked: string,
  { settings, context }: { readonly settings: ModelSettings; readonly context: ExecutorContext },
): Promise<HistoryMessage[]> {
  const { history = DEFAULT_HISTORY } = settings;
  if (history === 0 || task.sessionKey === undefined) return [];
  const session = await context.session({ turns: history });
  const window = context.contextWindow ?? session?.contextWindow ?? null;
  const room = window === null ? Number.POSITIVE_INFINITY : roomIn(window, asked, settings);
  return lastThatFit(session?.turns ?? [], room).flat();
}

function roomIn(window: number, asked: string, { system = "", maxTokens }: ModelSettings): number {
  const answer = maxTokens ?? Math.ceil(window * ANSWER_SHARE);
  return window - answer - tokensOf(system) - tokensOf(asked);
}

/** Drops whole turns, oldest first. */
function lastThatFit(turns: readonly Turn[], room: number): HistoryMessage[][] {
  const kept: HistoryMessage[][] = [];
  let left = room;
  for (const turn of turns.toReversed()) {
    const messages = messagesOf(turn);
    left -= messages.reduce((sum, { content }) => sum + tokensOf(content), 0);
    if (left < 0) break;
    kept.unshift(messages);
  }
  return kept;
}

/** Empty for a turn that is not text, such as a payload, or a result without a text. */
function messagesOf({ work, result }: Turn): HistoryMessage[] {
  const asked = work.kind === "message" ? work.message : work.kind === "instruction" ? work.instruction : "";
  const text = isObject(result) ? result["text"] : result;
  if (asked === "" || typeof text !== "string" || text === "") return [];
  return [
    { role: "user", content: asked },
    { role: "assistant", content: text },
  ];
}

/** An estimate that is rather too high. An exact count needs the tokenizer of the model. */
function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / TOKEN_BYTES) + MESSAGE_TOKENS;
}

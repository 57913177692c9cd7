import { type Fields, isObject } from "../model/input/field-checks.ts";
import { ANSWER_BYTES_MAX, bytesOf, cutToFit } from "./answer-text.ts";
import type { Usage } from "./executor.ts";

/** Names, ids and reasons are short. A longer value of a server is cut. */
const NAME_LENGTH_MAX = 256;
const REFUSAL_LENGTH_MAX = 4_096;
/** For all calls together. In JSON a character takes at most six bytes, so this leaves room for the text. */
const TOOL_CALLS_LENGTH_MAX = 131_072;
/** Counted for each call besides its text, so that many empty calls are bounded too. */
const TOOL_CALL_LENGTH = 100;

/** The result of a task of a model. */
export interface ModelResult {
  readonly text: string;
  /** Why it stopped: `stop`, `length`, `tool_calls` …; null if the server does not say. */
  readonly finishReason: string | null;
  /** The model that responded, as the server names it. */
  readonly model: string;
  readonly usage?: Usage;
  readonly toolCalls?: readonly ToolCall[];
  /** The text of a refusal, in place of an answer. */
  readonly refusal?: string;
  /** The text was longer than a result may be. */
  readonly truncated?: true;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote them. They should be JSON. */
  readonly arguments: string;
}

/** The answer of a model, put together from its parts. */
export class ModelAnswer {
  #text = "";
  #refusal = "";
  #finishReason: string | null = null;
  #model = "";
  #usage: Usage | undefined;
  readonly #toolCalls: ToolCall[] = [];
  /** The position of the call that further parts of the same index belong to. */
  readonly #callAt = new Map<unknown, number>();
  #toolCallsLength = 0;
  #begun = false;

  /** Whether any part of an answer has arrived. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Whether the model has reported why it stopped. Nothing important comes after that. */
  get finished(): boolean {
    return this.#finishReason !== null;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Adds a part, or a whole answer. Returns the text that it adds. */
  add(part: Fields): string {
    this.#model ||= nameIn(part["model"]);
    this.#usage = tokensIn(part["usage"]) ?? this.#usage;
    const choice = firstChoice(part["choices"]);
    if (choice === undefined) return "";
    this.#begun = true;
    this.#finishReason = nameIn(choice["finish_reason"]) || this.#finishReason;
    const said = choice["delta"] ?? choice["message"];
    return isObject(said) ? this.#addSaid(said) : "";
  }

  /** `model`: the requested model, if the server does not name it. */
  result(model: string): ModelResult {
    const result = {
      text: this.#text.toWellFormed(),
      finishReason: this.#finishReason,
      model: this.#model || model,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#toolCalls.length === 0 ? {} : { toolCalls: this.#toolCalls }),
      ...(this.#refusal === "" ? {} : { refusal: this.#refusal }),
    };
    return bytesOf(result) <= ANSWER_BYTES_MAX ? result : cutToFit(result);
  }

  #addSaid(said: Fields): string {
    const text = textIn(said["content"]);
    // A result has no room for more. The part beyond the limit shows that the text was cut.
    if (this.#text.length <= ANSWER_BYTES_MAX) this.#text += text;
    this.#refusal = (this.#refusal + textIn(said["refusal"])).slice(0, REFUSAL_LENGTH_MAX);
    const calls = Array.isArray(said["tool_calls"]) ? said["tool_calls"].filter(isObject) : [];
    for (const [position, call] of calls.entries()) this.#addToCall(call, call["index"] ?? position);
    return text;
  }

  /** Some servers give every call the same index. A part with another id is another call. */
  #addToCall(part: Fields, index: unknown): void {
    const id = nameIn(part["id"]);
    const called = isObject(part["function"]) ? part["function"] : {};
    const name = nameIn(called["name"]);
    const added = textIn(called["arguments"]);
    this.#countToolCalls(id.length + name.length + added.length);
    const position = this.#callAt.get(index) ?? -1;
    const begun = this.#toolCalls[position];
    const isNew = begun === undefined || (id !== "" && begun.id !== "" && begun.id !== id);
    const before = isNew ? { id: "", name: "", arguments: "" } : begun;
    if (isNew) this.#countToolCalls(TOOL_CALL_LENGTH);
    if (isNew) this.#callAt.set(index, this.#toolCalls.length);
    this.#toolCalls[isNew ? this.#toolCalls.length : position] = {
      id: before.id || id,
      name: before.name || name,
      arguments: before.arguments + added,
    };
  }

  #countToolCalls(length: number): void {
    this.#toolCallsLength += length;
    if (this.#toolCallsLength <= TOOL_CALLS_LENGTH_MAX) return;
    throw new Error(`the model calls tools with more than ${TOOL_CALLS_LENGTH_MAX} characters`);
  }
}

/** If several answers were requested, the server numbers them by index. */
function firstChoice(choices: unknown): Fields | undefined {
  if (!Array.isArray(choices)) return undefined;
  return choices.filter(isObject).find(({ index }) => index === undefined || index === 0);
}

function tokensIn(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = usage;
  if (!isCount(inputTokens) && !isCount(outputTokens)) return undefined;
  return {
    ...(isCount(inputTokens) ? { inputTokens } : {}),
    ...(isCount(outputTokens) ? { outputTokens } : {}),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Content is text, or a list of parts of which some are text. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("");
}

function nameIn(value: unknown): string {
  return typeof value === "string" ? value.slice(0, NAME_LENGTH_MAX) : "";
}

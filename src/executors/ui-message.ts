import { type Fields, isObject } from "../model/input/field-checks.ts";
import { ANSWER_BYTES_MAX, bytesOf, cutToFit, excerpt } from "./answer-text.ts";
import type { Usage } from "./executor.ts";

/** Names, ids and reasons are short. A longer value of a server is cut. */
const NAME_LENGTH_MAX = 256;
/** Inputs and outputs of tools are often whole pages or pictures. Of larger ones only the size is kept. */
const VALUE_BYTES_MAX = 16_384;
/** The room for all tool calls in a result. Further ones are dropped. */
const TOOL_CALLS_BYTES_MAX = 262_144;

/** The result of a UI message stream. */
export interface UiMessageResult {
  readonly text: string;
  /** Why it stopped: `stop`, `length`, `tool-calls` …; null if the server does not say. */
  readonly finishReason: string | null;
  readonly toolCalls: readonly UiToolCall[];
  /** Null if the server does not say. */
  readonly usage: Usage | null;
  /** The text was longer than a result may be. */
  readonly truncated?: true;
}

/** With the field names of the stream. */
interface UiToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
}

/** Replaces a value that is too large to keep. */
interface Omitted {
  readonly omitted: true;
  readonly bytes: number;
}

/** Whether an event only frames a message, and so is no progress. */
export function isLifecycle(event: unknown): boolean {
  const type = isObject(event) ? event["type"] : undefined;
  return typeof type === "string" && /^(?:start|start-step|message-metadata|reasoning-[a-z]+)$/.test(type);
}

/**
 * The message that a UI message stream (of the AI SDK) builds, event by event. Any event may be added: `begun` is true once they
 * are such a stream.
 */
export class UiMessage {
  #begun = false;
  #text = "";
  #finishReason: string | null = null;
  #usage: unknown;
  readonly #toolCalls = new Map<string, UiToolCall>();
  #toolCallsBytes = 0;

  get begun(): boolean {
    return this.#begun;
  }

  /** The usage as the server sent it, unchecked. */
  get usage(): unknown {
    return this.#usage;
  }

  /** Returns the text that the event adds. Throws if it reports a failure of the agent. */
  add(event: Fields): string {
    const { type } = event;
    if (typeof type !== "string") return "";
    this.#begun ||= isSignOfUiMessage(type, event);
    this.#usage = attachedUsage(event) ?? this.#usage;
    switch (type) {
      case "text-delta":
        return this.#addText(event["delta"]);
      case "error":
        throw new Error(
          withReason("the agent failed", event["errorText"] ?? event["error"] ?? event["message"]),
        );
      case "abort":
        throw new Error(withReason("the agent gave up", event["reason"]));
      case "finish":
        this.#finish(event["finishReason"]);
        return "";
      default:
        if (type.startsWith("tool-")) this.#addToToolCall(event);
        return "";
    }
  }

  result(usage: Usage | null): UiMessageResult {
    const result = {
      text: this.#text.toWellFormed(),
      finishReason: this.#finishReason,
      toolCalls: [...this.#toolCalls.values()],
      usage,
    };
    return bytesOf(result) <= ANSWER_BYTES_MAX ? result : cutToFit(result);
  }

  #addText(delta: unknown): string {
    if (typeof delta !== "string") return "";
    // A result has no room for more. The part beyond the limit shows that the text was cut.
    if (this.#text.length <= ANSWER_BYTES_MAX) this.#text += delta;
    return delta;
  }

  #finish(reason: unknown): void {
    if (typeof reason !== "string") return;
    this.#finishReason = reason.slice(0, NAME_LENGTH_MAX);
    if (reason === "error") throw new Error("the agent failed: it finished with an error");
  }

  /** A call comes in several events: its name and input first, then its outcome. */
  #addToToolCall(event: Fields): void {
    const toolCallId = nameIn(event["toolCallId"]);
    if (toolCallId === "") return;
    const before = this.#toolCalls.get(toolCallId);
    const { errorText } = event;
    const call: UiToolCall = {
      ...before,
      toolCallId,
      toolName: nameIn(event["toolName"]) || (before?.toolName ?? ""),
      ...(event["input"] === undefined ? {} : { input: bounded(event["input"]) }),
      ...(event["output"] === undefined ? {} : { output: bounded(event["output"]) }),
      ...(typeof errorText === "string" ? { errorText: excerpt(errorText) } : {}),
    };
    const added = bytesOf(call) - (before === undefined ? 0 : bytesOf(before));
    if (this.#toolCallsBytes + added > TOOL_CALLS_BYTES_MAX) return;
    this.#toolCallsBytes += added;
    this.#toolCalls.set(toolCallId, call);
  }
}

/** Whether such an event shows that the stream is a UI message stream. */
function isSignOfUiMessage(type: string, { finishReason }: Fields): boolean {
  if (type === "finish") return typeof finishReason === "string";
  return /^(?:text-start|text-delta|error|abort)$/.test(type) || type.startsWith("tool-");
}

/** Servers attach usage to the message's metadata, or to the event itself. */
function attachedUsage(event: Fields): unknown {
  const metadata = isObject(event["messageMetadata"]) ? event["messageMetadata"] : {};
  return metadata["totalUsage"] ?? metadata["usage"] ?? event["totalUsage"] ?? event["usage"];
}

function bounded(value: unknown): unknown {
  const bytes = bytesOf(value);
  return bytes <= VALUE_BYTES_MAX ? value : ({ omitted: true, bytes } satisfies Omitted);
}

function nameIn(value: unknown): string {
  return typeof value === "string" ? value.slice(0, NAME_LENGTH_MAX) : "";
}

function withReason(what: string, reason: unknown): string {
  if (reason === undefined || reason === null || reason === "") return what;
  return `${what}: ${excerpt(typeof reason === "string" ? reason : JSON.stringify(reason))}`;
}

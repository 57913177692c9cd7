import { isObject } from "../model/input/field-checks.ts";
import type { Task } from "../model/task.ts";
import type { LimitedResponse } from "../outbound/read-answer.ts";
import type { SseEvent, SseReader } from "../outbound/sse-reader.ts";
import { type AnswerText, readJson, resultOfText, tooLong } from "./answer-text.ts";
import { baseOf } from "./base-url.ts";
import { callHeaders } from "./call-headers.ts";
import type { CallOptions } from "./call-out.ts";
import { conversationId } from "./conversation-id.ts";
import { postForEvents } from "./event-answer.ts";
import { type Executor, type ExecutorContext, PROGRESS_BYTES_MAX } from "./executor.ts";
import { failureOf } from "./http-answer.ts";
import { ReportedUsage, usageIn } from "./reported-usage.ts";
import { textOf } from "./task-text.ts";
import { progressOfText } from "./text-progress.ts";
import { isLifecycle, UiMessage } from "./ui-message.ts";

export interface ChatExecutorOptions extends CallOptions {
  readonly url: string;
  readonly newConversationId: () => string;
}

/**
 * Sends the work to an agent: `POST {url}/chat`. A UI message stream becomes one message, and its text is progress. In any other
 * response, each event is progress and the last one is the result.
 */
export function chatExecutor(options: ChatExecutorOptions): Executor {
  const url = `${baseOf(options.url)}/chat`;
  const own = { "content-type": "application/json", accept: "text/event-stream" };
  const usage = new ReportedUsage();
  return async (task, context) => {
    const { tenantId, signal, holds } = context;
    const message = textOf(task, "chat");
    const conversation = (await conversationOf(task, context)) ?? options.newConversationId();
    const headers = callHeaders({ own, configured: options.headers, tenantId, task });
    const body = bodyOf(task, message, conversation);
    const request = { headers, body, signal, holds, failureOf: chatFailureOf };
    const { reader, usageHeader } = await postForEvents(url, request, options);
    return readResult(reader, { context, usage, isReported: usage.ofHeader(usageHeader, context) });
  };
}

function bodyOf(task: Task, message: string, conversation: string): Readonly<Record<string, unknown>> {
  return {
    mode: "agent",
    supportsImages: false,
    provider: "browseros",
    ...task.llmConfig,
    conversationId: conversation,
    message,
    isScheduledTask: true,
  };
}

/** The conversation of a task: that of its schedule, else of its session. Undefined: a new one. */
async function conversationOf(task: Task, context: ExecutorContext): Promise<string | undefined> {
  const key = task.conversationId ?? task.sessionKey;
  if (key === undefined) return undefined;
  const session = task.sessionKey === undefined ? null : await context.session();
  return conversationId({ tenantId: context.tenantId, key, generation: session?.generation ?? 0 });
}

function chatFailureOf(response: LimitedResponse): Error {
  return failureOf(response, "Chat API returned");
}

interface ReadResultParams {
  readonly context: ExecutorContext;
  readonly usage: ReportedUsage;
  /** Whether a header has already reported the usage. */
  readonly isReported: boolean;
}

/** Reads events up to the end. An agent may also respond with one JSON document instead. */
async function readResult(
  reader: SseReader,
  { context, usage, isReported }: ReadResultParams,
): Promise<unknown> {
  const message = new UiMessage();
  let last: AnswerText | null;
  try {
    last = await readEvents(reader, message, context);
  } catch (error) {
    // A response that ends in a failure has a cost too.
    if (!isReported) usage.of(message.usage, context);
    throw error;
  }
  if (message.begun)
    return message.result(isReported ? usageIn(message.usage) : usage.of(message.usage, context));
  const { otherwise } = reader;
  const answer = last ?? (otherwise !== null && isJson(otherwise) ? otherwise : null);
  if (answer === null) throw new Error("empty answer");
  const result = resultOfText(answer, { json: true });
  if (!isReported) usage.ofAnswer(result, context);
  return result;
}

/** Returns the last JSON. */
async function readEvents(
  reader: SseReader,
  message: UiMessage,
  { progress }: ExecutorContext,
): Promise<AnswerText | null> {
  const onText = progressOfText(progress);
  let last: AnswerText | null = null;
  for await (const event of reader) {
    for (const said of jsonIn(event)) {
      last = said;
      const value = said.truncated ? undefined : readJson(said.text)?.value;
      if (said.truncated) addTruncated(message, said.text);
      else if (isObject(value)) onText(message.add(value));
      if (!message.begun && !isLifecycle(value)) report(said, progress);
    }
  }
  return last;
}

/** Handles an event that was too long to keep. Mostly it is the output of a tool, which the message does not need. */
function addTruncated(message: UiMessage, text: string): void {
  const type = /^\s*\{\s*"type"\s*:\s*"([a-z-]+)"/.exec(text)?.[1];
  if (type === "text-delta") throw tooLong();
  if (type === "error" || type === "abort")
    message.add({ type, errorText: "an error that is too long to keep" });
  if (type?.startsWith("tool-")) message.add({ type });
}

/** The JSON of an event. Some servers omit the empty line between events, so each line may be one. */
function jsonIn({ data: text, truncated }: SseEvent): readonly AnswerText[] {
  if (isJson({ text, truncated })) return [{ text, truncated }];
  return text
    .split("\n")
    .map((line) => ({ text: line, truncated: false }))
    .filter(isJson);
}

/** Of a truncated text, only the first character can be checked. */
function isJson({ text, truncated }: AnswerText): boolean {
  return truncated ? /^\s*[[{"]/.test(text) : readJson(text) !== null;
}

function report({ text, truncated }: AnswerText, progress: ExecutorContext["progress"]): void {
  if (truncated || Buffer.byteLength(text) > PROGRESS_BYTES_MAX) return;
  progress(readJson(text)?.value);
}

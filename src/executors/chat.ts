import { DEFAULT_TENANT, type Task } from "../model/task.ts";
import type { LimitedResponse } from "../outbound/read-answer.ts";
import type { SseEvent, SseReader } from "../outbound/sse-reader.ts";
import { type AnswerText, readJson, resultOfText } from "./answer-text.ts";
import { baseOf } from "./base-url.ts";
import type { CallOptions } from "./call-out.ts";
import { postForEvents } from "./event-answer.ts";
import { type Executor, type ExecutorContext, PROGRESS_BYTES_MAX } from "./executor.ts";
import { failureOf } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { requestHeaders } from "./request-headers.ts";
import { textOf } from "./task-text.ts";

export interface ChatExecutorOptions extends CallOptions {
  readonly url: string;
  readonly newConversationId: () => string;
}

/** Tells an agent what to do: `POST {url}/chat`. The last event of its answer is the result, each is progress. */
export function chatExecutor(options: ChatExecutorOptions): Executor {
  const url = `${baseOf(options.url)}/chat`;
  const own = { "content-type": "application/json", accept: "text/event-stream" };
  const headers = mergeHeaders(own, options.headers);
  return async (task, { tenantId, signal, progress }) => {
    const body = bodyOf(task, conversationOf(task, tenantId) ?? options.newConversationId());
    const request = { headers: requestHeaders(headers, task), body, signal, failureOf: chatFailureOf };
    return resultOfEvents(await postForEvents(url, request, options), progress);
  };
}

function bodyOf(task: Task, conversationId: string): Readonly<Record<string, unknown>> {
  const message = textOf(task, "chat");
  return {
    mode: "agent",
    supportsImages: false,
    provider: "browseros",
    ...task.llmConfig,
    conversationId,
    message,
    isScheduledTask: true,
  };
}

/**
 * Which conversation a task belongs to: that of its schedule, else of its session; undefined: one of its own. Tenants choose
 * their names and may talk to the same agent, which must not take the conversation of one for that of another.
 */
function conversationOf(task: Task, tenantId: string): string | undefined {
  const conversation = task.conversationId ?? task.sessionKey;
  if (conversation === undefined || tenantId === DEFAULT_TENANT) return conversation;
  return `${tenantId}/${conversation}`;
}

function chatFailureOf(response: LimitedResponse): Error {
  return failureOf(response, "Chat API returned");
}

/** An agent that answers with one JSON instead of events has said all it has to say. */
async function resultOfEvents(reader: SseReader, progress: ExecutorContext["progress"]): Promise<unknown> {
  let last: AnswerText | null = null;
  for await (const event of reader) {
    for (const said of jsonIn(event)) {
      last = said;
      report(said, progress);
    }
  }
  const { otherwise } = reader;
  const answer = last ?? (otherwise !== null && isJson(otherwise) ? otherwise : null);
  if (answer === null) throw new Error("empty answer");
  return resultOfText(answer, { json: true });
}

/** What an event says in JSON. Some servers leave out the empty line between events, so that each line may be one. */
function jsonIn({ data: text, truncated }: SseEvent): readonly AnswerText[] {
  if (isJson({ text, truncated })) return [{ text, truncated }];
  return text
    .split("\n")
    .map((line) => ({ text: line, truncated: false }))
    .filter(isJson);
}

/** Of what was cut only its beginning can be looked at. */
function isJson({ text, truncated }: AnswerText): boolean {
  return truncated ? /^\s*[[{"]/.test(text) : readJson(text) !== null;
}

function report({ text, truncated }: AnswerText, progress: ExecutorContext["progress"]): void {
  if (truncated || Buffer.byteLength(text) > PROGRESS_BYTES_MAX) return;
  progress(readJson(text)?.value);
}

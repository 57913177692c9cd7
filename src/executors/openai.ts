import type { Clock } from "../model/clock.ts";
import { isObject } from "../model/input/field-checks.ts";
import type { LimitedResponse } from "../outbound/read-answer.ts";
import type { SseReader } from "../outbound/sse-reader.ts";
import { excerpt, readJson, tooLong } from "./answer-text.ts";
import { baseOf } from "./base-url.ts";
import { callHeaders } from "./call-headers.ts";
import type { CallOptions } from "./call-out.ts";
import { postForEvents } from "./event-answer.ts";
import type { Executor } from "./executor.ts";
import { failureOf } from "./http-answer.ts";
import type { ModelSettings } from "./model-settings.ts";
import { ModelAnswer } from "./openai-answer.ts";
import { failureIn } from "./openai-failure.ts";
import { modelRequest } from "./openai-request.ts";
import { progressOfText } from "./text-progress.ts";

/** Sent by servers after the last part of an answer. */
const DONE = "[DONE]";
/** How long the response may take to end after that, so that the connection can be reused. */
const LINGER_MS = 1_000;

export interface OpenAiExecutorOptions extends CallOptions {
  readonly baseUrl: string;
  /** Sent with every call. It is removed from quoted responses. */
  readonly apiKey?: string | undefined;
  readonly settings: ModelSettings;
}

/** Calls a model: `POST {baseUrl}/chat/completions`. Its text is progress while it is written. */
export function openAiExecutor(options: OpenAiExecutorOptions): Executor {
  const { apiKey, settings, clock } = options;
  const url = `${baseOf(options.baseUrl)}/chat/completions`;
  const own = {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  };
  const hide = (text: string) => (apiKey === undefined ? text : text.replaceAll(apiKey, "…"));
  const hiddenFailureOf = (response: LimitedResponse) =>
    failureOf({ ...response, body: hide(response.body) });

  return async (task, context) => {
    const { tenantId, signal, progress, usage, holds } = context;
    const body = await modelRequest(task, settings, context);
    const headers = callHeaders({ own, configured: options.headers, tenantId, task });
    const hangUp = new AbortController();
    const bounded = AbortSignal.any([signal, hangUp.signal]);
    const request = { headers, body, signal: bounded, holds, failureOf: hiddenFailureOf };
    const { reader } = await postForEvents(url, request, options);
    const onText = progressOfText(progress);
    const answer = new ModelAnswer();
    try {
      await readModelAnswer(reader, answer, { url, clock, hide, onText, hangUp });
    } finally {
      // A response that breaks off has a cost too.
      if (answer.usage !== undefined) usage(answer.usage);
    }
    return answer.result(String(body["model"] ?? settings.model));
  };
}

interface ReadModelAnswerParams {
  readonly url: string;
  readonly clock: Clock;
  /** Removes the key from a text. */
  readonly hide: (text: string) => string;
  readonly onText: (added: string) => void;
  /** Closes the connection. */
  readonly hangUp: AbortController;
}

async function readModelAnswer(
  reader: SseReader,
  answer: ModelAnswer,
  params: ReadModelAnswerParams,
): Promise<void> {
  const { url, hide, onText } = params;
  const done = await eachPart(reader, params, (data) => onText(addPart(answer, hide(data))));
  if (reader.otherwise?.truncated === true) throw tooLong();
  if (reader.otherwise !== null) addWhole(answer, hide(reader.otherwise.text));
  if (!answer.begun) throw new Error("empty answer");
  if (done || answer.finished || reader.otherwise !== null) return;
  throw new Error(`the answer of ${new URL(url).origin} broke off before its end`);
}

/** Returns whether the server sent `[DONE]`. What comes after that is ignored, errors included. */
async function eachPart(
  reader: SseReader,
  { clock, hangUp }: ReadModelAnswerParams,
  take: (data: string) => void,
): Promise<boolean> {
  let linger: { cancel(): void } | null = null;
  try {
    for await (const { data, truncated } of reader) {
      if (linger !== null) continue;
      if (truncated) throw tooLong();
      if (data.trim() === DONE) linger = clock.setTimer(LINGER_MS, () => hangUp.abort());
      else take(data);
    }
  } catch (error) {
    if (linger === null) throw error;
  }
  linger?.cancel();
  return linger !== null;
}

/** Ignores what is not JSON. Returns the text that the part adds. */
function addPart(answer: ModelAnswer, data: string): string {
  const part = readJson(data)?.value;
  if (!isObject(part)) return "";
  const failure = failureIn(part);
  if (failure !== null) throw failure;
  return answer.add(part);
}

/** A server without streaming responds in one piece. A response that is no chat completion is an error. */
function addWhole(answer: ModelAnswer, text: string): void {
  addPart(answer, text);
  if (answer.begun || text.trim() === "") return;
  throw new Error(`the answer is no chat completion: ${excerpt(text)}`);
}

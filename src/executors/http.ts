import { taskTexts } from "../model/dependency-result.ts";
import type { Task } from "../model/task.ts";
import type { TextBody } from "../model/text/text-body.ts";
import { textBody } from "../outbound/text-body.ts";
import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { attemptOf, callHeaders, headerText, traceparent } from "./call-headers.ts";
import { type CallOptions, callOut } from "./call-out.ts";
import type { Executor, ExecutorContext } from "./executor.ts";
import { resultOf } from "./http-answer.ts";
import { ReportedUsage } from "./reported-usage.ts";

export interface HttpExecutorOptions extends CallOptions {
  readonly url: string;
}

/** Posts the task as JSON to a URL. The response, JSON or text, is the result. */
export function httpExecutor(options: HttpExecutorOptions): Executor {
  const usage = new ReportedUsage();
  return async (task, context) => {
    const body = textBody(taskTexts({ tenantId: context.tenantId, ...task }));
    const headers = callHeaders({
      own: { "content-type": "application/json" },
      configured: options.headers,
      tenantId: context.tenantId,
      task,
      identity: {
        ...identityOf(task),
        ...signatureOf({ task, body, context, options }),
        ...(context.sendsTaskToken ? { "x-rota-task-token": context.taskToken } : {}),
      },
    });
    const { signal, holds } = context;
    const request = { method: "POST", headers, body, signal, holds, bodyBytesMax: ANSWER_BYTES_MAX };
    const answer = await callOut(options.url, request, options);
    const isReported = usage.ofHeader(answer.usageHeader, context);
    const result = resultOf(answer, { json: "as-declared" });
    if (!isReported) usage.ofAnswer(result, context);
    return result;
  };
}

function identityOf(task: Task): Record<string, string> {
  return {
    "x-rota-task-id": task.taskId,
    "x-rota-attempt": String(attemptOf(task)),
    "x-agent-id": headerText(task.agentId),
    traceparent: traceparent(task),
  };
}

interface SignatureParams {
  readonly task: Task;
  readonly body: TextBody;
  readonly context: ExecutorContext;
  readonly options: CallOptions;
}

/** Signed like the webhooks of the tenant. */
function signatureOf({ task, body, context, options }: SignatureParams): Record<string, string> {
  const id = `${task.taskId}_${attemptOf(task)}`;
  const timestamp = Math.floor(options.clock.now() / 1_000);
  const signature = context.sign(
    { id, timestamp, body },
    // A guard means that a user named the URL.
    { ownSecretOnly: options.guard !== undefined },
  );
  if (signature === null) return {};
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": signature };
}

import { z } from "zod";
import { ERROR_STATUS, type ErrorCode, RotaError } from "../model/errors.ts";

const CODES = Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]];

/** An example message for each code. */
const SENTENCES: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "send the body as JSON, with the header `content-type: application/json`",
  invalid_field: "unknown field `instructoin`: did you mean `instruction`?",
  unauthorized: "an API key is missing: send it as `Authorization: Bearer rota_…`",
  forbidden:
    "the role `viewer` may not do this: use a key with the role `operator`, `tenant-admin` or `admin`",
  not_found: "task not found",
  unknown_worker: "worker not found: register it again with `POST /v1/workers`",
  method_not_allowed: "/tasks does not take PUT, only GET, HEAD, POST",
  conflict: "task is already done",
  idempotency_conflict:
    "`idempotencyKey` was used within 24 hours for another request, which made the task tsk_019a8f6e: take a new key",
  unknown_key:
    'tasks[1]: `dependsOn` names "frist", which is neither the id of a task nor a key: did you mean "first"?',
  dependency_cycle: "these tasks depend on each other in a circle, so that none could ever start: a → b → a",
  batch_too_large: "`tasks` has 51 tasks, and a batch with actions has at most 50: send several",
  body_too_large: "the body is larger than 1048576 bytes",
  queue_full: "rejected: global queue full",
  rate_limited: "this API key makes more than 100 requests a second: send fewer, or many tasks as one batch",
  too_many_polls:
    "10000 claims wait on this node, and there can be no more: wait before the next claim, or ask for more slots with fewer workers",
  quota_exceeded:
    "the tenant stores 1073741000 bytes and may store 1073741824, and this takes 2048: wait until old tasks are deleted, or have `limits.maxStoredBytes` raised",
  interval_too_short:
    '"every minute" is due every 60 seconds, and 300 is the shortest interval for this caller: write "every 5 minutes"',
  too_deep:
    "this task would have 6 tasks above it, and 5 is the most for this caller: tsk_019a8f6e → tsk_019a8f6f → …; do the work in the task itself",
  internal_error: "internal error of Rota; its log has the details",
  draining: "this node is stopping and accepts no new work",
  scheduler_disabled: "the scheduler is disabled: set `scheduler.enabled` to true",
  storage_unavailable: "the storage does not respond",
};

/** The body of every failed request. */
export const errorAnswer = z
  .strictObject({
    code: z.enum(CODES).describe("What went wrong, for programs; docs/errors.md explains each."),
    error: z.string().describe("What went wrong and what to do instead, for people."),
    retryable: z.literal(true).exactOptional().describe("Present if the same request may work later."),
    details: z.record(z.string(), z.unknown()).exactOptional().describe("Depends on the code."),
  })
  .meta({
    id: "Error",
    description: "The response to every request that fails.",
    examples: [exampleOf("invalid_field")],
  });

/** Every request can fail with these. */
const ALWAYS = [
  "invalid_json",
  "invalid_field",
  "unauthorized",
  "forbidden",
  "body_too_large",
  "rate_limited",
  "internal_error",
] as const;

type Always = (typeof ALWAYS)[number];
type ErrorAnswers<Code extends ErrorCode> = Readonly<Record<(typeof ERROR_STATUS)[Code], typeof errorAnswer>>;

/** The error responses of an operation, by status: those of every request, and the given ones. */
export const errorAnswers = errorAnswersWith({});

/** The same for a resource whose errors have messages of their own. */
export function errorAnswersWith(sentences: Partial<Record<ErrorCode, string>>) {
  const example = (code: ErrorCode) => exampleOf(code, sentences[code]);
  return <Code extends ErrorCode>(...codes: readonly Code[]): ErrorAnswers<Code | Always> => {
    const byStatus = Map.groupBy<number, ErrorCode>([...ALWAYS, ...codes], (code) => ERROR_STATUS[code]);
    const answers = [...byStatus].map(([status, alike]) => {
      const description = alike.map((code) => `\`${code}\``).join(", ");
      return [status, errorAnswer.meta({ description, examples: alike.map(example) })];
    });
    return Object.fromEntries(answers) as ErrorAnswers<Code | Always>;
  };
}

function exampleOf(code: ErrorCode, sentence = SENTENCES[code]): ReturnType<RotaError["toJSON"]> {
  return new RotaError(code, sentence).toJSON();
}

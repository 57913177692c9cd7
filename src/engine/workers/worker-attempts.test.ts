import { expect, test } from "vitest";
import type { TaskRecord } from "../../model/task-record.ts";
import { hashOfToken } from "./attempt-token.ts";
import { type AttemptFinish, WorkerAttempts, type WorkerAttemptsOptions } from "./worker-attempts.ts";

/** Attempts `a`, `b` … of worker `wrk`. A result that is `{ writ }` asks for something, which takes until `written` resolves. */
function openAttempts() {
  const written = Promise.withResolvers<void>();
  const pending: string[] = [];
  const record = {
    ...{ tenant: "default", schedule: null, retryCount: 0, deadline: null, attempts: [] },
    spec: { retryPolicy: { maxRetries: 0 } },
  } as unknown as TaskRecord;
  const options = {
    storage: { capabilities: { exclusive: true } },
    storageNow: () => 0,
    random: () => 0,
    dispatcher: {
      finish: async ({ finish }: { finish: { settlement: { result: string } } }) => {
        pending.push(finish.settlement.result);
        return "done";
      },
    },
    metrics: {},
    secrets: { hideModelSecrets: (_record: TaskRecord, result: unknown) => result },
    processResult: (_record: TaskRecord, result: unknown) =>
      typeof result === "object" ? written.promise.then(() => "with a writ") : null,
  } as unknown as WorkerAttemptsOptions;
  const attempts = new WorkerAttempts(options);
  const tokens = ["a", "b"].map((name) => `att_${name}`);
  const secrets = tokens.map((name) => ({ nonce: name, hash: hashOfToken(name) }));
  const tasks = tokens.map((nonce, token) => ({ token, nonce, task: record, assignedAt: 0, bytes: 0 }));
  attempts.assigned("wrk", tasks, secrets);
  const end = (token: string, result: unknown): AttemptFinish => {
    return { attemptToken: `att_${token}`, outcome: "done", result, retryable: true };
  };
  return { attempts, end, pending, written };
}

test("ends are pending together: a plain one does not hide that another still waits", async () => {
  const { attempts, end, pending, written } = openAttempts();
  const ends = [end("a", "plain"), end("b", { writ: true }), end("a", "again")];
  const began = attempts.beginFinish("wrk", ends).then(({ answers }) => {
    expect(pending).toEqual(["plain", "with a writ"]);
    return answers;
  });
  // Long enough for the end whose result asks for nothing.
  await new Promise(setImmediate);
  expect(pending).toEqual(["plain"]);
  written.resolve();
  expect(await began).toEqual([
    { attemptToken: "att_a", recorded: true },
    { attemptToken: "att_b", recorded: true },
    { attemptToken: "att_a", recorded: true, repeated: true },
  ]);
});

test("nothing to end is pending at once", async () => {
  const { attempts } = openAttempts();
  expect(await (await attempts.beginFinish("wrk", [])).answers).toEqual([]);
});

import { expect, test } from "vitest";
import { unboundedMemory } from "../../../test/support/memory.ts";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { claimedTask, type RecordOverrides } from "../../../test/support/records.ts";
import { Attempt, NO_TASK_TOKENS } from "./attempt.ts";
import { BegunAttempts } from "./begun-attempts.ts";
import { Completer } from "./completer.ts";

const NOW = 1_000_000;

function makeCompleter() {
  return new Completer({ storageNow: () => NOW, random: () => 0.5, memory: unboundedMemory() });
}

function attemptOf(overrides: RecordOverrides = {}, log = new RecordingLog()) {
  const { token, task } = claimedTask(overrides);
  const hooks = {
    memory: unboundedMemory(),
    log,
    onProgress: () => {},
    onLog: () => {},
    hideSecrets: (_attempt: unknown, text: string) => text,
    hideModelSecrets: (_attempt: unknown, answer: unknown) => answer,
    onUsage: () => {},
    contextWindow: () => undefined,
    readSession: async () => null,
    takeMessages: async () => [],
    sign: () => null,
    taskTokens: NO_TASK_TOKENS,
  };
  return new Attempt({ token, record: task, begunAt: 0, hooks });
}

test("an outcome becomes an end of the attempt that holds the token", () => {
  const completer = makeCompleter();
  const attempt = attemptOf({ lane: "main", agent: "a" });
  completer.finish(attempt, { kind: "done", result: 5 });
  expect(completer.take(10)).toEqual({
    finishes: [
      {
        seq: attempt.record.seq,
        token: attempt.token,
        settlement: { to: "done", result: 5 },
        tenant: "default",
        lane: "main",
        agent: "a",
        callsBack: false,
        failures: 0,
        freesSlot: true,
        heldBytes: 0,
      },
    ],
    progress: [],
  });
  expect(completer.size).toBe(0);
});

test("ends and starts are reported tenant by tenant, each tenant's in their order, so that they share rows of the log", () => {
  const completer = makeCompleter();
  const begun = new BegunAttempts();
  const tenants = ["b", "a", "b", "a", "c"];
  const attempts = tenants.map((tenant) => attemptOf({ tenant }));
  for (const attempt of attempts) completer.finish(attempt, { kind: "done", result: null });
  const running = attempts.slice(0, 1).map(({ token }) => token);
  for (const { token, record } of attempts)
    if (!running.includes(token)) begun.add({ ...record, token, startedAt: NOW });
  const { finishes } = completer.take(10);
  const order = [1, 3, 0, 2, 4].map((index) => attempts[index]?.token);
  expect(finishes.map(({ token }) => token)).toEqual(order);
  const starts = begun.take(finishes, { areAll: true });
  expect(starts.map(({ token }) => token)).toEqual(order.filter((token) => !running.includes(Number(token))));
  // One slot had them in turn, in the order in which they began.
  expect(new Set(starts.map(({ wave }) => wave))).toEqual(new Set([1, 2, 3, 4]));
});

test("a failure is delayed by the storage's clock while retries are left", () => {
  const completer = makeCompleter();
  const failed = { kind: "failed", error: "x", permanent: false } as const;
  completer.finish(attemptOf({ retryCount: 1, retryPolicy: { maxRetries: 2 } }), failed);
  completer.finish(attemptOf({ retryCount: 2, retryPolicy: { maxRetries: 2 } }), failed);
  expect(completer.take(10).finishes.map(({ settlement }) => settlement)).toEqual([
    { to: "delayed", error: "x", runAt: NOW + 2_000 },
    { to: "failed", error: "x" },
  ]);
});

test("the usage of an attempt is stored with its end, however it ended", () => {
  const completer = makeCompleter();
  const usage = { inputTokens: 10, outputTokens: 2, contextWindow: 8_000 };
  const written = { ...usage, contextTokens: 12 };
  const failed = { kind: "failed", error: "x", permanent: false } as const;
  for (const [outcome, maxRetries] of [
    [{ kind: "done", result: 5 } as const, 0],
    [failed, 0],
    [failed, 1],
    [{ kind: "interrupted", error: "x" } as const, 1],
  ] as const) {
    const attempt = attemptOf({ retryPolicy: { maxRetries } });
    attempt.usage(usage);
    completer.finish(attempt, outcome);
  }
  expect(completer.take(10).finishes.map(({ settlement: { to }, usage }) => [to, usage])).toEqual([
    ["done", written],
    ["failed", written],
    ["delayed", written],
    ["queued", written],
  ]);
});

test("an end without a word about its cost carries none", () => {
  const completer = makeCompleter();
  completer.finish(attemptOf(), { kind: "done", result: 5 });
  expect(completer.take(10).finishes[0]).not.toHaveProperty("usage");
});

test("the summary of a run is stored with the end of its task, once that is done", () => {
  const completer = makeCompleter();
  const done = (result: unknown) => ({ kind: "done", result }) as const;
  completer.finish(attemptOf({ schedule: 7 }), done({ merged: 3 }));
  completer.finish(attemptOf({ schedule: 7 }), done("x".repeat(10_000)));
  completer.finish(attemptOf({ schedule: 7 }), done(null));
  completer.finish(attemptOf({ schedule: 7 }), { kind: "failed", error: "x", permanent: true });
  completer.finish(attemptOf({ schedule: null }), done("of no schedule"));
  expect(completer.take(10).finishes.map(({ summary }) => summary)).toEqual([
    '{"merged":3}',
    `${"x".repeat(4_096 - "[truncated]".length)}[truncated]`,
    undefined,
    undefined,
    undefined,
  ]);
});

test("`take` returns the oldest ends first, and no more than `max`", () => {
  const completer = makeCompleter();
  for (const result of [1, 2, 3]) completer.finish(attemptOf(), { kind: "done", result });
  const results = () =>
    completer.take(2).finishes.map(({ settlement }) => settlement.to === "done" && settlement.result);
  expect(results()).toEqual([1, 2]);
  expect(results()).toEqual([3]);
});

test("ends with large results are written in small groups, the largest alone", () => {
  const completer = makeCompleter();
  for (const [index, kib] of [100, 100, 100, 1_000, 1_000, 1].entries()) {
    const attempt = attemptOf();
    attempt.resultBytes = kib * 1_024;
    completer.finish(attempt, { kind: "done", result: index });
  }
  const groups = Array.from({ length: 4 }, () => completer.take(10).finishes);
  expect(groups.map((finishes) => finishes.map(({ heldBytes }) => heldBytes / 1_024))).toEqual([
    [100, 100],
    [100],
    [1_000],
    [1_000],
  ]);
  expect(completer.take(10).finishes).toHaveLength(1);
});

test("ends that could not be written come first the next time", () => {
  const completer = makeCompleter();
  completer.finish(attemptOf(), { kind: "done", result: 1 });
  const taken = completer.take(10);
  completer.finish(attemptOf(), { kind: "done", result: 2 });
  completer.giveBack(taken);
  expect(completer.take(10).finishes.map(({ settlement }) => settlement)).toEqual([
    { to: "done", result: 1 },
    { to: "done", result: 2 },
  ]);
});

test("of several reports the latest is kept, also over one given back", () => {
  const completer = makeCompleter();
  const attempt = attemptOf();
  completer.report(attempt, "old");
  completer.report(attempt, "newer");
  const taken = completer.take(10);
  expect(taken.progress.map(({ progress }) => progress)).toEqual(["newer"]);
  completer.report(attempt, "newest");
  completer.giveBack(taken);
  expect(completer.take(10).progress.map(({ progress }) => progress)).toEqual(["newest"]);
});

test("a report that cannot be kept is left out, and the log says so", () => {
  const completer = makeCompleter();
  const log = new RecordingLog();
  const attempt = attemptOf({}, log);
  completer.report(attempt, 10n);
  completer.report(attempt, "x".repeat(20_000));
  expect(completer.take(10).progress).toEqual([]);
  expect(log.messages("warn")).toEqual([
    "progress is not JSON: Do not know how to serialize a BigInt; it is left out",
    "progress is too large: 20002 bytes of JSON, at most 16384 are kept; it is left out",
  ]);
});

test("reports of an attempt that holds nothing any more are forgotten", () => {
  const completer = makeCompleter();
  const attempt = attemptOf();
  completer.report(attempt, 1);
  completer.drop(attempt);
  expect(completer.size).toBe(0);
});

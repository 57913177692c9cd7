import { expect, test } from "vitest";
import type { ClaimedAttempt } from "../../interface/workers.ts";
import { silentLog } from "../../model/log.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Heartbeats } from "./heartbeats.ts";
import { HeldAttempt } from "./held-attempt.ts";
import type { WorkerCalls } from "./worker-calls.ts";

test("short tasks need no heartbeat of their own, and a longer one is named within a second", async () => {
  const clock = new ManualClock();
  const sent: string[][] = [];
  const calls = {
    registration: { heartbeatMs: 5_000, leaseMs: 15_000 },
    try: async (_call: string, { body }: { body: { attempts: { attemptToken: string }[] } }) => {
      sent.push(body.attempts.map(({ attemptToken }) => attemptToken));
      return { ok: true, answer: { attempts: [] } };
    },
  } as unknown as WorkerCalls;
  let held: HeldAttempt[] = [];
  const heartbeats = new Heartbeats({
    calls,
    clock,
    random: () => 0,
    log: silentLog,
    attempts: () => held,
    onCancel: () => {},
    onDrain: () => {},
  });
  const begin = (attemptToken: string) => {
    const claimed = { attemptToken, number: 1, task: { taskId: attemptToken, agentId: "py" } };
    const hooks = { clock, log: silentLog, onNews: heartbeats.wake };
    held = [new HeldAttempt(claimed as unknown as ClaimedAttempt, hooks as never)];
    heartbeats.wake();
  };
  for (let n = 0; n < 20; n++) {
    begin(`short ${n}`);
    await clock.advance(400);
  }
  expect(sent).toEqual([]);
  begin("long");
  await clock.advance(1_000);
  expect(sent).toEqual([["long"]]);
  await clock.advance(5_000);
  expect(sent).toEqual([["long"], ["long"]]);
  held = [];
  await clock.advance(60_000);
  expect(sent).toHaveLength(2);
});

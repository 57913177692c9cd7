import { expect, test } from "vitest";
import { unboundedMemory } from "../../../test/support/memory.ts";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { claimedTask } from "../../../test/support/records.ts";
import { away, meddle, openMemory } from "../../../test/support/storages.ts";
import { TURNS_MAX } from "../../model/turn.ts";
import type { ReadTurnsParams, SessionTurns } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Attempt, NO_TASK_TOKENS } from "./attempt.ts";
import { readTaskSession } from "./task-session.ts";

const SHOWN = { generation: 3, contextWindow: null, turns: [] };
const SESSION: SessionTurns = { ...SHOWN, turnsLength: 70 };

/** An attempt, and a function that reads its session from a storage that returns this. */
async function reading(answer: () => Promise<SessionTurns | null>, session: string | null = "user:42") {
  const clock = new ManualClock();
  const asked: ReadTurnsParams[] = [];
  const storage = await openMemory(clock);
  const sessions = {
    ...storage.sessions,
    readTurns: (params: ReadTurnsParams) => {
      asked.push(params);
      return answer();
    },
  };
  const { token, task } = claimedTask({ session });
  const hooks = {
    memory: unboundedMemory(),
    log: new RecordingLog(),
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
  const attempt = new Attempt({ token, record: task, begunAt: 0, hooks });
  const read = (turns: number) =>
    readTaskSession({
      clock,
      random: () => 0,
      storage: meddle({ ...storage, sessions }, {}),
      attempt,
      turns,
    });
  return { attempt, clock, asked, read };
}

test("reads this many turns for the attempt, up to the limit", async () => {
  const { attempt, asked, read } = await reading(async () => SESSION);
  for (const turns of [0, 20, 1e9, -1, Number.NaN, 2.5]) expect(await read(turns)).toEqual(SHOWN);
  expect(asked.map(({ limit }) => limit)).toEqual([0, 20, TURNS_MAX, 0, 0, 2]);
  expect(asked[0]).toMatchObject({ seq: attempt.record.seq, token: attempt.token });
});

test("asks nothing for a task that has no session", async () => {
  const { asked, read } = await reading(async () => SESSION, null);
  expect([await read(20), asked]).toEqual([null, []]);
});

test("an attempt that no longer holds its task gets an error, and so does one that was stopped meanwhile", async () => {
  const lost = await reading(async () => null);
  await expect(lost.read(0)).rejects.toThrow("the attempt is over");
  const stopped = await reading(async () => {
    stopped.attempt.abort(new Error("cancelled"), 0);
    return SESSION;
  });
  await expect(stopped.read(0)).rejects.toThrow("cancelled");
});

test("a storage that is away is waited for", async () => {
  let broken = true;
  const { clock, read } = await reading(async () => {
    if (broken) throw away();
    return SESSION;
  });
  const session = read(0);
  await clock.advance(5_000);
  broken = false;
  await clock.advance(5_000);
  expect(await session).toEqual(SHOWN);
});

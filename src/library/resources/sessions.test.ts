import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { away, openMemory } from "../../../test/support/storages.ts";
import { ManualClock } from "../../testing/manual-clock.ts";

const KEY = "user:42";
const LATER = "2100-01-01T00:00:00Z";

test("stopAll goes on until all have ended, and leaves alone what comes meanwhile", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let calls = 0;
  const sessions = {
    ...storage.sessions,
    stop: async (params: Parameters<typeof storage.sessions.stop>[0]) => {
      calls += 1;
      if (calls === 2) await rota.tasks.submit({ message: "new", sessionKey: KEY, runAt: LATER });
      return storage.sessions.stop({ ...params, limit: 1 });
    },
  };
  const { rota } = await openTestRota({ clock, storage: { ...storage, sessions } });
  const ids = [];
  for (const message of ["one", "two", "three"]) {
    ids.push((await rota.tasks.submit({ message, sessionKey: KEY, runAt: LATER })).taskId);
  }
  expect(await rota.sessions.stopAll(KEY)).toEqual({ stopped: [], cancelled: ids });
  expect(await rota.sessions.get(KEY)).toMatchObject({ queued: 1 });
  expect((await rota.stats()).metrics.tasksCancelled).toBe(3);
});

test("a message that cannot be stored gets an error, and counts as nothing", async () => {
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation }) => {
        if (operation === "sessions.send") throw away();
      },
    },
  });
  await expect(rota.sessions.send(KEY, { message: "hi" })).rejects.toMatchObject({
    code: "storage_unavailable",
  });
  expect((await rota.stats()).metrics.tasksSubmitted).toBe(0);
});

test("nothing is accepted while the scheduler is disabled, but what is there is shown and stopped", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { enabled: false } } });
  await expect(rota.sessions.send(KEY, { message: "hi" })).rejects.toMatchObject({
    code: "scheduler_disabled",
  });
  expect(await rota.sessions.send(KEY, { message: "/stopall" })).toEqual({ stopped: [], cancelled: [] });
  expect(await rota.sessions.update(KEY, { cap: 3 })).toMatchObject({ cap: 3 });
});

test("messages that were merged count once", async () => {
  const { rota } = await openTestRota();
  for (const message of ["one", "two", "three"]) await rota.sessions.send(KEY, { message });
  expect((await rota.stats()).metrics).toMatchObject({
    tasksSubmitted: 1,
    agents: { index: { submitted: 1 } },
  });
});

import { expect, test } from "vitest";
import type { RotaOptions } from "../src/interface/options.ts";
import { ManualClock, settle } from "../src/testing/manual-clock.ts";
import { Latch } from "../src/testing/signals.ts";
import { openTestRota, type TestRota } from "./support/rota.ts";
import { createSchedule, MINUTE, SECOND } from "./support/schedules.ts";
import { asSharedStorage, openMemory } from "./support/storages.ts";

/** The outcomes of the due times of all schedules, oldest first. */
async function statuses({ rota }: TestRota): Promise<string[]> {
  return (await rota.runs.list()).runs.map(({ status }) => status).reverse();
}

test("a schedule hands its message to its agent at its moment, and its run has the result", async () => {
  const { rota, clock } = await openTestRota();
  rota.agent("research", async (task, { usage }) => {
    usage({ inputTokens: 70, outputTokens: 3 });
    return { heard: task.message, in: task.sessionKey, about: task.scheduleId };
  });
  await rota.start();
  const { scheduled_task } = await rota.schedules.create({
    schedule: "every 5 minutes",
    message: "What is new?",
    agent: "research",
  });
  await clock.advance(5 * MINUTE);
  const { id } = scheduled_task;
  const due_at = Math.floor(clock.now() / SECOND);
  expect(await rota.schedules.runs(id)).toMatchObject({
    runs: [
      {
        task_id: id,
        status: "succeeded",
        due_at,
        started_at: due_at,
        moments: 1,
        result_summary: JSON.stringify({ heard: "What is new?", in: `schedule:${id}`, about: id }),
        input_tokens: 70,
        output_tokens: 3,
        attempt: 1,
      },
    ],
  });
  expect(await rota.schedules.get(id)).toMatchObject({ run_count: 1, next_fire_at: due_at + 300 });
});

test("a run that fails is tried three times more, and moments that come meanwhile are skipped", async () => {
  const opened = await openTestRota();
  const { rota, clock } = opened;
  rota.agent("shaky", () => {
    throw new Error("no answer");
  });
  await rota.start();
  const { scheduled_task } = await rota.schedules.create({
    schedule: { kind: "every", everyMs: 10 * SECOND },
    message: "x",
    agent: "shaky",
  });
  // 2, 4 and 8 seconds later: the second moment comes before the last try.
  await clock.advance(10 * SECOND + 13_999);
  expect(await statuses(opened)).toEqual(["running", "skipped"]);
  await clock.advance(1);
  const { runs } = await rota.schedules.runs(scheduled_task.id);
  expect(runs.at(-1)).toMatchObject({ status: "failed", error_message: "no answer", attempt: 4 });
  expect(await rota.schedules.get(scheduled_task.id)).toMatchObject({ status: "active" });
});

test("nothing fires where the scheduler is disabled", async () => {
  const opened = await openTestRota({ options: { scheduler: { enabled: false } } as RotaOptions });
  const { rota, clock, storage } = opened;
  await createSchedule(storage, clock.now());
  await rota.start();
  await clock.advance(2 * MINUTE);
  expect(await statuses(opened)).toEqual([]);
});

test("nothing fires from the moment a node drains, also when it has not quite started", async () => {
  const [registered, stored] = [new Latch(), new Latch()];
  const opened = await openTestRota({
    meddler: {
      after: ({ operation }) => {
        if (operation === "nodes.register") return registered.opened;
        return operation === "agents.configure" ? stored.opened : undefined;
      },
    },
  });
  const { rota, clock, storage } = opened;
  await createSchedule(storage, clock.now());
  await clock.advance(2 * MINUTE);
  const started = rota.start();
  await settle();
  // Its limit is stored once everything else runs, which keeps the start from ending.
  rota.agent("late", { maxInflight: 1 }, () => {});
  const drained = rota.drain({ graceMs: 0 });
  registered.open();
  await clock.advance(MINUTE);
  expect(await statuses(opened)).toEqual([]);
  stored.open();
  await started;
  await drained;
  expect(await statuses(opened)).toEqual([]);
});

test("an agent that another node has just made is found when its schedule fires", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const quiet = { ...asSharedStorage(storage), subscribe: () => () => {} };
  const firing = await openTestRota({ clock, storage: quiet });
  await firing.rota.start();
  await settle();
  const other = await openTestRota({ clock, storage: asSharedStorage(storage) });
  await other.rota.agents.create({ id: "fresh", executor: { type: "echo" } });
  await createSchedule(storage, clock.now(), { agent: "fresh" });
  await clock.advance(MINUTE);
  expect(await statuses(firing)).toEqual(["succeeded"]);
});

test("a schedule whose agent was deleted is paused at its next moment, and its run says why", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  await rota.agents.create({ id: "gone", executor: { type: "echo" } });
  const { scheduled_task } = await rota.schedules.create({
    schedule: "every 1 minute",
    message: "x",
    agent: "gone",
  });
  await rota.agents.delete("gone");
  await clock.advance(2 * MINUTE);
  const { runs } = await rota.schedules.runs(scheduled_task.id);
  expect(runs).toMatchObject([
    { status: "failed", error_message: 'agent "gone" not found', queue_task_id: null, moments: 1 },
  ]);
  expect(await rota.schedules.get(scheduled_task.id)).toMatchObject({ status: "paused", next_fire_at: 0 });
});

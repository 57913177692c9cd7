import { describe, expect, test } from "vitest";
import { openTestRota, type TestRotaParams } from "../../test/support/rota.ts";
import { asSharedStorage, type Meddler, openMemory } from "../../test/support/storages.ts";
import type { TenantAccess } from "../interface/rota.ts";
import type { Bounds } from "../model/bounds.ts";
import type { Provenance, Via } from "../model/provenance.ts";
import { ManualClock } from "../testing/manual-clock.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const HOUR = { schedule: "every hour", message: "look" };

function by(via: Via, more: Partial<Provenance["createdBy"]> = {}, within: Provenance["within"] = null) {
  return { createdBy: { keyId: null, agentId: null, via, ...more }, within } satisfies Provenance;
}

async function open(options: TestRotaParams["options"] = {}, meddler: Meddler = {}) {
  const opened = await openTestRota({ options, meddler });
  const as = (provenance: Provenance, access: TenantAccess = {}) =>
    opened.rota.tenant("default", { provenance, ...access });
  return { ...opened, as };
}

describe("bounds", () => {
  test("hold by default for MCP and within tasks, and for no other caller", async () => {
    const { as, rota } = await open();
    const within = { taskId: "tsk_1", rootTaskId: "tsk_1", depth: 0 };
    const often = { schedule: "every minute", message: "look" };
    const bounded = [by("mcp"), by("mcp", { keyId: "key_1" }), by("http", { agentId: "index" }, within)];
    for (const provenance of bounded) {
      await expect(as(provenance).schedules.create(often)).rejects.toMatchObject({
        code: "interval_too_short",
        status: 400,
      });
    }
    for (const via of ["http", "cli", "dashboard", "worker", "library"] as const) {
      await as(by(via)).schedules.create(often);
    }
    expect(await rota.writs.carryOut({ text: "/schedule every 1 minute: look" })).toMatchObject({ ok: true });
  });

  test("are those of the key, else of the agent, else of the configuration; null is no bound", async () => {
    const { as, rota } = await open({ bounds: { maxOpenTasks: 3 } });
    rota.agent("scout", { bounds: { maxOpenTasks: 2 } }, async () => new Promise(() => {}));
    const fill = async (provenance: Provenance, bounds?: Bounds) => {
      const { tasks } = as(provenance, bounds === undefined ? {} : { bounds });
      for (let n = 0; n < 5; n += 1) {
        try {
          await tasks.submit({ message: "hi" });
        } catch (error) {
          expect(error).toMatchObject({ code: "quota_exceeded", details: { bound: "maxOpenTasks" } });
          return n;
        }
      }
      return null;
    };
    expect(await fill(by("http", { keyId: "key_1" }))).toBe(3);
    expect(await fill(by("http", { keyId: "key_2", agentId: "scout" }))).toBe(2);
    expect(await fill(by("http", { keyId: "key_3", agentId: "scout" }), { maxOpenTasks: 1 })).toBe(1);
    expect(await fill(by("http", { keyId: "key_4" }), { maxOpenTasks: null })).toBeNull();
    expect(await fill(by("mcp", { keyId: "key_5" }), { maxOpenTasks: 0 })).toBe(0);
    expect(await fill(by("library"))).toBeNull();
  });

  test("of an agent are shared by all its keys", async () => {
    const { as, rota } = await open();
    rota.agent("scout", { bounds: { maxOpenTasks: 1 } }, async () => new Promise(() => {}));
    await as(by("http", { keyId: "key_1", agentId: "scout" })).tasks.submit({ message: "hi" });
    const second = as(by("http", { keyId: "key_2", agentId: "scout" })).tasks.submit({ message: "hi" });
    await expect(second).rejects.toMatchObject({
      code: "quota_exceeded",
      message:
        "`maxOpenTasks`: 1 tasks have not ended, and 1 is the most for this caller: wait until one has ended, or cancel one",
    });
  });

  test("refuse a batch whole, and messages", async () => {
    const { as, rota } = await open();
    const { tasks, sessions } = as(by("mcp", { keyId: "key_1" }), { bounds: { maxSubmitsPerHour: 2 } });
    const batch = { tasks: [{ payload: 1 }, { payload: 2 }, { payload: 3 }] };
    await expect(tasks.submitBatch(batch)).rejects.toMatchObject({ code: "quota_exceeded" });
    expect((await rota.tasks.counts()).total).toBe(0);
    await tasks.submitBatch({ tasks: [{ payload: 1 }] });
    await sessions.send("s", { message: "hi" });
    await expect(sessions.send("t", { message: "hi" })).rejects.toMatchObject({
      code: "quota_exceeded",
      retryAfterSec: expect.any(Number),
    });
    expect((await rota.tasks.counts()).total).toBe(2);
  });

  test("count tasks that are retried and runs that are asked for, so that neither is a way around them", async () => {
    const { as, rota } = await open();
    rota.agent("scout", async () => new Promise(() => {}));
    const bounds = { maxOpenTasks: 1, maxSubmitsPerHour: 4 };
    const { tasks, schedules } = as(by("mcp", { keyId: "key_1" }), { bounds });
    const { taskId } = await tasks.submit({ agentId: "scout", message: "hi" });
    await tasks.cancel(taskId);
    const { taskId: second } = await tasks.submit({ agentId: "scout", message: "hi" });
    const full = { code: "quota_exceeded", details: { bound: "maxOpenTasks", max: 1, used: 1 } };
    await expect(tasks.retry(taskId)).rejects.toMatchObject(full);
    expect((await tasks.get(taskId)).state).toBe("cancelled");
    const { scheduled_task: made } = await rota.schedules.create({ ...HOUR, agent: "scout" });
    await expect(schedules.run(made.id)).rejects.toMatchObject(full);
    expect((await rota.schedules.runs(made.id)).runs).toEqual([]);
    await tasks.cancel(second);
    for (let n = 0; n < 2; n += 1) {
      await tasks.retry(taskId);
      await tasks.cancel(taskId);
    }
    await expect(tasks.retry(taskId)).rejects.toMatchObject({ details: { bound: "maxSubmitsPerHour" } });
    await expect(schedules.run(made.id)).rejects.toMatchObject({ details: { bound: "maxSubmitsPerHour" } });
    // A caller without bounds is not counted.
    await rota.tasks.retry(taskId);
    expect(await rota.schedules.run(made.id)).toMatchObject({ ran: true });
  });

  test("are no bounds to go around by retries of many tasks at once", async () => {
    const { as, rota } = await open();
    const { taskId } = await rota.tasks.submit({ message: "hi" });
    await rota.tasks.cancel(taskId);
    const bounded = as(by("http", { keyId: "key_1" }), { bounds: { maxSubmitsPerHour: 9 } });
    const retry = { action: "retry", filter: { state: "cancelled" } } as const;
    const refused = { code: "forbidden", message: expect.stringContaining("retry the tasks one by one") };
    await expect(bounded.bulks.start(retry)).rejects.toMatchObject(refused);
    await expect(bounded.tasks.retry(taskId, { dependants: true })).rejects.toMatchObject(refused);
    expect(await bounded.bulks.preview(retry)).toMatchObject({ matched: 1 });
    await bounded.bulks.start({ action: "cancel", filter: { state: "queued" } });
    await bounded.tasks.retry(taskId);
    await as(by("http", { keyId: "key_1" }), { bounds: { maxDepth: 1 } }).bulks.start(retry);
  });

  test("limit how far ahead a task or a one-time schedule may be", async () => {
    const { as, clock } = await open();
    const { tasks, schedules } = as(by("mcp"));
    const at = (days: number) => new Date(clock.now() + days * DAY_MS);
    await tasks.submit({ message: "hi", runAt: at(90) });
    await expect(tasks.submit({ message: "hi", runAt: at(91) })).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "runAt" },
    });
    const once = (days: number) =>
      schedules.create({ schedule: { kind: "at", atMs: at(days).getTime() }, message: "hi" });
    await once(89);
    await expect(once(91)).rejects.toMatchObject({ code: "invalid_field", details: { field: "schedule" } });
  });

  test("say the shortest interval that is allowed, and give schedules an end", async () => {
    const { as, clock } = await open();
    const { schedules } = as(by("mcp"));
    await expect(schedules.create({ schedule: "* * * * *", message: "x" })).rejects.toThrow(
      '"* * * * *" is due every 60 seconds, and 300 is the shortest interval for this caller (`minIntervalS`): write "every 5 minutes"',
    );
    const end = Math.floor((clock.now() + 30 * DAY_MS) / 1_000);
    const { scheduled_task: made } = await schedules.create({ schedule: "every 5 minutes", message: "x" });
    expect(made.until).toBe(end);
    const { scheduled_task: later } = await schedules.create({ ...HOUR, until: end + 1_000_000 });
    expect(later.until).toBe(end);
    const { scheduled_task: earlier } = await schedules.create({ ...HOUR, until: end - 1_000 });
    expect(earlier.until).toBe(end - 1_000);
    await expect(schedules.create({ schedule: "0 0 1 1 *", message: "x" })).rejects.toThrow(
      "scheduleTtlDays",
    );
    // An edit cannot get around any of it.
    expect((await schedules.update(earlier.id, { until: null })).until).toBe(end);
    await expect(schedules.update(earlier.id, { schedule: "every minute" })).rejects.toMatchObject({
      code: "interval_too_short",
    });
  });

  test("take a day for a day, also one that a clock change makes shorter", async () => {
    const { as, clock } = await open();
    const bounds = { minIntervalS: 24 * 60 * 60, scheduleTtlDays: null };
    const { schedules } = as(by("http", { keyId: "key_1" }), { bounds });
    clock.set(Date.parse("2026-03-01T12:00:00Z"));
    const daily = { message: "x", tz: "Europe/Berlin" };
    await schedules.create({ ...daily, schedule: "every day at 9:00" });
    await schedules.create({ ...daily, schedule: "every 24 hours" });
    await expect(schedules.create({ ...daily, schedule: "every 23 hours" })).rejects.toMatchObject({
      code: "interval_too_short",
    });
  });

  test("count the schedules of a maker, and name the oldest", async () => {
    const { as } = await open();
    const { schedules } = as(by("mcp", { keyId: "key_1" }), { bounds: { maxActiveSchedules: 2 } });
    const first = (await schedules.create(HOUR)).scheduled_task;
    const second = (await schedules.create(HOUR)).scheduled_task;
    await expect(schedules.create(HOUR)).rejects.toThrow(
      `\`maxActiveSchedules\`: the key key_1 may have 2 active or paused schedules: delete one first, of the oldest #${first.id}, #${second.id}`,
    );
    await as(by("mcp", { keyId: "key_2" })).schedules.create(HOUR);
    await schedules.delete(first.id);
    await schedules.create(HOUR);
  });

  test("hold for writs as far as they are set", async () => {
    const { rota } = await open();
    rota.agent("scout", { writs: true, bounds: { maxActiveSchedules: 1, minIntervalS: 600 } }, async () =>
      ["/schedule every 5 minutes: a", "/schedule every hour: b", "/schedule every hour: c"].join("\n"),
    );
    const text = "/schedule every 5 minutes: look";
    expect(await rota.writs.carryOut({ text })).toMatchObject({ ok: true });
    const ofKey = rota.tenant("default", { provenance: by("http", { keyId: "key_1" }) });
    expect((await ofKey.writs.carryOut({ agent: "scout", text })).output).toContain(
      'write "every 10 minutes"',
    );
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "scout", message: "go" });
    const { result } = await rota.tasks.wait(taskId);
    expect(String(result)).toContain('write "every 10 minutes"');
    expect(String(result).match(/OK: scheduled/g)).toHaveLength(1);
    expect(String(result)).toContain("`maxActiveSchedules`");
  });

  test("limit how deep tasks submit tasks, and name the chain", async () => {
    const { as, rota } = await open();
    const first = (await as(by("http")).tasks.submit({ message: "hi" })).taskId;
    const below = (depth: number, taskId = first) =>
      as(by("http", { agentId: "index" }, { taskId, rootTaskId: first, depth })).tasks;
    const second = (await below(0).submit({ message: "hi" })).taskId;
    await below(4, second).submit({ message: "hi" });
    await expect(below(5, second).submit({ message: "hi" })).rejects.toMatchObject({
      code: "too_deep",
      status: 403,
      details: { max: 5, chain: [first, second] },
    });
    expect((await rota.tasks.counts()).total).toBe(3);
  });

  test("hold over all nodes that submit at once", async () => {
    const clock = new ManualClock();
    const storage = asSharedStorage(await openMemory(clock));
    const nodes = [await openTestRota({ clock, storage }), await openTestRota({ clock, storage })];
    const submits = Array.from({ length: 20 }, (_, n) =>
      nodes[n % 2]?.rota
        .tenant("default", { provenance: by("mcp", { keyId: "key_1" }), bounds: { maxOpenTasks: 7 } })
        .tasks.submit({ message: "hi" }),
    );
    const settled = await Promise.allSettled(submits);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(7);
    expect((await storage.tasks.counts({ tenant: "default" })).queued).toBe(7);
  });
});

test("a deleted key takes its schedules along: they pause, and say why", async () => {
  const { rota } = await open();
  const { id: keyId } = await rota.keys.create({ role: "operator", name: "gateway" });
  const ofKey = rota.tenant("default", { provenance: by("http", { keyId }) });
  const { scheduled_task: made } = await ofKey.schedules.create(HOUR);
  const { scheduled_task: other } = await rota.schedules.create(HOUR);
  await rota.keys.delete(keyId);
  expect(await rota.schedules.get(made.id)).toMatchObject({
    status: "paused",
    paused_reason: `the API key "gateway" (${keyId}), which made it, was deleted`,
    next_fire_at: 0,
  });
  expect((await rota.schedules.get(other.id)).status).toBe("active");
  expect((await rota.schedules.update(made.id, { status: "active" })).status).toBe("active");
});

test("a schedule that a key makes or resumes while it is deleted pauses, too", async () => {
  let meanwhile: Record<string, () => Promise<unknown>> = {};
  const before = async ({ operation }: { operation: string }) => {
    const { [operation]: act, ...rest } = meanwhile;
    meanwhile = rest;
    await act?.();
  };
  const { rota } = await open({}, { before });
  const { id: keyId } = await rota.keys.create({ role: "operator", name: "gateway" });
  const { schedules } = rota.tenant("default", { provenance: by("http", { keyId }) });
  const { scheduled_task: resumed } = await schedules.create({ ...HOUR, enabled: false });
  meanwhile = {
    "schedules.update": () => schedules.create(HOUR),
    "schedules.create": () => rota.keys.delete(keyId),
  };
  const { status, paused_reason } = await schedules.update(resumed.id, { status: "active" });
  expect([status, paused_reason]).toEqual([
    "paused",
    expect.stringContaining(`${keyId}, which made it, was deleted`),
  ]);
  const { schedules: all } = await rota.schedules.list();
  expect(all.map((each) => each.status)).toEqual(["paused", "paused"]);
  expect((await rota.schedules.update(resumed.id, { status: "active" })).status).toBe("active");
});

describe("cancelling a tree", () => {
  async function grow(meddler: Meddler = {}) {
    const opened = await open({}, meddler);
    const submit = async (parent: string | null, depth = 0, rootTaskId = parent ?? "") => {
      const within = parent === null ? null : { taskId: parent, rootTaskId, depth };
      return (await opened.as(by("library", {}, within)).tasks.submit({ message: "hi" })).taskId;
    };
    const root = await submit(null);
    const [left, right] = [await submit(root), await submit(root)];
    const leaf = await submit(left, 1, root);
    const stranger = await submit(null);
    const states = async () =>
      Promise.all(
        [root, left, right, leaf, stranger].map(async (id) => (await opened.rota.tasks.get(id)).state),
      );
    return { ...opened, root, left, right, leaf, stranger, states };
  }

  test("cancels all that is below a task, and nothing else", async () => {
    const { rota, left, states } = await grow();
    expect(await rota.tasks.cancel(left, { tree: true })).toEqual({
      ...{ status: "cancelled", taskId: left, cancelled: 2 },
    });
    expect(await states()).toEqual(["queued", "cancelled", "queued", "cancelled", "queued"]);
  });

  test("goes on below a task that has ended, and counts what it cancelled", async () => {
    const { rota, root, left, states } = await grow();
    await rota.tasks.cancel(left);
    await rota.tasks.cancel(root);
    await expect(rota.tasks.cancel(root)).rejects.toMatchObject({ code: "conflict" });
    expect(await rota.tasks.cancel(root, { tree: true })).toMatchObject({ cancelled: 2 });
    expect(await states()).toEqual(["cancelled", "cancelled", "cancelled", "cancelled", "queued"]);
    expect(await rota.tasks.cancel(root, { tree: true })).toMatchObject({ cancelled: 0 });
  });

  test("refuses what is no yes or no, and tasks that are not there", async () => {
    const { rota, root } = await grow();
    await expect(rota.tasks.cancel(root, { tree: "yes" as unknown as boolean })).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "tree" },
    });
    await expect(rota.tasks.cancel("tsk_nothing", { tree: true })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("reaches what is submitted while it goes on", async () => {
    let late: string | undefined;
    const { rota, root, as } = await grow({
      after: async ({ operation }) => {
        if (operation !== "tasks.tree" || late !== undefined) return;
        const within = { taskId: root, rootTaskId: root, depth: 0 };
        ({ taskId: late } = await as(by("library", {}, within)).tasks.submit({ message: "late" }));
      },
    });
    await rota.tasks.cancel(root, { tree: true });
    expect((await rota.tasks.get(late ?? "")).state).toBe("cancelled");
  });
});

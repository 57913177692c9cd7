import { expect, test } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { until } from "../../testing/signals.ts";

const LATER = new Date(Date.UTC(2100, 0)).toISOString();
const cancel = { action: "cancel", filter: { state: "delayed" } };

test("operators act on many tasks, after a dry run; the action and the audit log name their key", async () => {
  const { rota, askWith } = await openKeyedServer();
  const admin = await rota.keys.create({ role: "admin", name: "admin" });
  const { id: keyId, key } = await rota.keys.create({ role: "operator", name: "works" });
  await askWith(key, "/tasks", { json: { payload: 1, runAt: LATER } });
  const looked = await askWith(key, "/v1/tasks/bulk", { json: { ...cancel, dryRun: true } });
  expect([looked.status, looked.body.matched]).toEqual([200, 1]);
  const misspelt = await askWith(key, "/v1/tasks/bulk", { json: { ...cancel, dryrun: true } });
  expect([misspelt.status, misspelt.body.error]).toEqual([
    400,
    "unknown field `dryrun`: did you mean `dryRun`?",
  ]);
  const { status, body } = await askWith(key, "/v1/tasks/bulk", {
    json: { ...cancel, ids: null, dryRun: null },
  });
  expect(status).toBe(202);
  expect(body).toEqual({ bulkId: expect.stringMatching(/^blk_/), matched: 1 });
  const path = `/v1/bulk/${body.bulkId}`;
  await until(async () => (await askWith(key, path)).body.state === "done", "it to end");
  expect((await askWith(key, path)).body).toEqual({
    bulkId: body.bulkId,
    ...cancel,
    matched: 1,
    done: 1,
    failed: 0,
    skipped: 0,
    state: "done",
    by: keyId,
  });
  expect((await askWith(key, `${path}/abort`, { method: "POST" })).body.state).toBe("done");
  const { entries } = (await askWith(admin.key, "/v1/audit")).body;
  expect(entries.map(({ route, subject }: { route: string; subject: string }) => [route, subject])).toEqual(
    expect.arrayContaining([
      ["POST /v1/bulk/{id}/abort", body.bulkId],
      ["POST /v1/tasks/bulk", body.bulkId],
    ]),
  );
  expect(entries.filter(({ route }: { route: string }) => route === "POST /v1/tasks/bulk")).toHaveLength(1);
});

test.each([
  [{ ...cancel, dryrun: true }, "unknown field `dryrun`: did you mean `dryRun`?"],
  [{ action: "cancel" }, "`filter` is missing: select tasks"],
  [{ ...cancel, ids: ["tsk_1"] }, "`filter` and `ids` exclude each other"],
  [{ action: "cancel", filter: { state: "pendng" } }, "`filter.state` must be one of waiting_dependency"],
  [
    { action: "cancel", filter: { state: "done" } },
    "`filter.state` must name a state that `cancel` can act on",
  ],
  [{ action: "cancel", ids: ["a b"] }, '`ids[0]` must be the id of a task, like "tsk_019a8f6e", not "a b"'],
])("%j is refused with what to write instead", async (json, sentence) => {
  const { key, askWith } = await openKeyedServer({ start: false });
  const { status, body } = await askWith(await key({ role: "operator" }), "/v1/tasks/bulk", { json });
  expect([status, body.error]).toEqual([400, expect.stringContaining(sentence)]);
});

test("viewers only look, keys of an agent do neither, and no tenant sees another's", async () => {
  const { rota, key, askWith } = await openKeyedServer({ start: false });
  const [operator, viewer] = [await key({ role: "operator" }), await key({ role: "viewer" })];
  const agent = await key({ role: "agent", agentId: "index" });
  const { id: tenantId } = await rota.tenants.create({ name: "zeta" });
  const stranger = await key({ role: "operator", tenantId });
  await askWith(operator, "/tasks", { json: { payload: 1, runAt: LATER } });
  const { bulkId } = (await askWith(operator, "/v1/tasks/bulk", { json: cancel })).body;
  const path = `/v1/bulk/${bulkId}`;
  const statuses = async (who: string) => [
    (await askWith(who, "/v1/tasks/bulk", { json: { ...cancel, dryRun: true } })).status,
    (await askWith(who, path)).status,
    (await askWith(who, `${path}/abort`, { method: "POST" })).status,
  ];
  expect(await statuses(viewer)).toEqual([403, 200, 403]);
  expect(await statuses(agent)).toEqual([403, 403, 403]);
  expect(await statuses(stranger)).toEqual([200, 404, 404]);
  expect(
    (await askWith(stranger, "/v1/tasks/bulk", { json: { ...cancel, dryRun: true } })).body.matched,
  ).toBe(0);
  expect(await statuses(operator)).toEqual([200, 200, 200]);
});

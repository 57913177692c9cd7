import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { away } from "../../../test/support/storages.ts";
import { writAnswer } from "../../api/writs.ts";

const LIST = "[/schedule list]\n(none)\n[END SCHEDULE]";
const NOT_RUNNING = "[/schedule list]\nERR: scheduler is not running\n[END SCHEDULE]";
const json = { text: "/schedule list" };
const asText = { accept: "text/plain" };

test("responds with JSON, or with plain text if the caller accepts that", async () => {
  const { ask } = await openTestServer();
  const answer = await ask("/v1/writs", { json });
  expect([answer.status, writAnswer.parse(answer.body)]).toEqual([200, { ok: true, output: LIST }]);
  const text = await ask("/v1/writs", { json, headers: asText });
  expect([text.status, text.headers.get("content-type"), text.body]).toEqual([
    200,
    "text/plain; charset=utf-8",
    `${LIST}\n`,
  ]);
});

test("responds 200 to a writ that failed, since the text says so", async () => {
  const { ask } = await openTestServer();
  const order = { text: "/schedule cancel 42" };
  const { status, body } = await ask("/v1/writs", { json: order });
  expect([status, body.ok]).toEqual([200, false]);
  expect((await ask("/v1/writs", { json: order, headers: asText })).body).toContain("ERR: no schedule #42");
});

test("refuses what cannot be meant with JSON, whatever was wanted", async () => {
  const { ask } = await openTestServer();
  for (const headers of [{}, asText]) {
    const unknown = await ask("/v1/writs", { json: { ...json, agent: "unknown" }, headers });
    expect([unknown.status, unknown.body.code]).toEqual([404, "not_found"]);
    const wrong = await ask("/v1/writs", { json: { text: 5 }, headers });
    expect([wrong.status, wrong.body.details]).toEqual([400, { field: "text" }]);
    expect((await ask("/v1/writs", { json: [], headers })).status).toBe(400);
  }
  expect((await ask("/v1/writs")).status).toBe(405);
  expect((await ask("/writs", { json })).status).toBe(404);
});

test("responds 503 while the scheduler does not run, with an `ERR` line as text", async () => {
  const disabled = await openTestServer({ options: { scheduler: { enabled: false } } });
  const drained = await openTestServer();
  await drained.rota.drain();
  for (const [{ ask }, code] of [
    [disabled, "scheduler_disabled"],
    [drained, "draining"],
  ] as const) {
    const { status, body } = await ask("/v1/writs", { json });
    expect([status, body.code, body.details]).toEqual([503, code, { output: NOT_RUNNING }]);
    const text = await ask("/v1/writs", { json, headers: asText });
    expect([text.status, text.headers.get("content-type"), text.body]).toEqual([
      503,
      "text/plain; charset=utf-8",
      `${NOT_RUNNING}\n`,
    ]);
  }
});

test("a line that fails in the storage gets ERR, and the other lines are carried out", async () => {
  let failures = 0;
  const { ask, log } = await openTestServer({
    meddler: {
      before: ({ operation }) => {
        if (operation !== "schedules.create") return;
        failures += 1;
        if (failures === 1) throw away();
        if (failures === 2) throw new TypeError("a fault of ours");
      },
    },
  });
  const text = "/schedule every hour: one\n".repeat(3);
  const { body } = await ask("/v1/writs", { json: { text } });
  expect(body.ok).toBe(false);
  expect(body.output.split("\n").filter((line: string) => /^(ERR|OK)/.test(line))).toEqual([
    "ERR: the connection was lost",
    "ERR: it could not be carried out: the log of the server says why",
    expect.stringMatching(/^OK: scheduled #1 every hour/),
  ]);
  expect(log.messages("error")).toEqual(["a writ could not be carried out"]);
});

import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { serve } from "../../../test/support/http-server.ts";
import { readMetrics } from "../../../test/support/prometheus.ts";
import { errorAnswer } from "../../api/error.ts";
import { delivery, deliveryPage } from "../../api/webhooks.ts";
import { until } from "../../testing/signals.ts";

/** A server, and a receiver of its callbacks that responds with this status. */
async function startCalledBack(answer: () => number) {
  const received: string[] = [];
  const receiver = await serve((request, response) => {
    received.push(String(request.headers["x-pinchtab-task-id"]));
    response.writeHead(answer()).end();
  });
  const made = await openTestServer({ options: { webhooks: { allow: ["127.0.0.1"] } } });
  const submit = async () =>
    (await made.ask("/tasks", { json: { payload: 1, callbackUrl: `${receiver}/done` } })).body
      .taskId as string;
  return { ...made, received, receiver, submit };
}

test("a callback is listed, shown and sent again", async () => {
  const { ask, received, receiver, submit } = await startCalledBack(() => 204);
  const taskId = await submit();
  const list = async (query: string) => {
    const { status, body } = await ask(`/v1/webhooks/deliveries?${query}`);
    expect(status).toBe(200);
    return deliveryPage.parse(body);
  };
  await until(async () => (await list(`taskId=${taskId}&status=delivered`)).count === 1);
  const { deliveries, nextCursor } = await list(`taskId=${taskId}`);
  const [found] = deliveries;
  expect([found, nextCursor]).toMatchObject([
    { taskId, url: `${receiver}/done`, state: "done", status: "delivered", tries: 1, responseStatus: 204 },
    null,
  ]);

  const path = `/v1/webhooks/deliveries/${found?.deliveryId}`;
  expect(delivery.parse((await ask(path)).body)).toEqual(found);
  const resent = await ask(`${path}/resend`, { method: "POST" });
  expect([resent.status, delivery.parse(resent.body)]).toMatchObject([202, { status: "pending", tries: 0 }]);
  await until(() => received.length === 2);
  expect(received).toEqual([taskId, taskId]);

  await submit();
  await until(async () => (await list("status=delivered")).count === 2);
  const first = await list("limit=1");
  expect((await list(`limit=1&cursor=${first.nextCursor}`)).deliveries[0]?.taskId).toBe(taskId);
});

test("one that is pending is not sent again, and its tries are counted", async () => {
  const { ask, received, submit } = await startCalledBack(() => 500);
  await submit();
  await until(() => received.length === 1);
  await until(async () => (await ask("/v1/webhooks/deliveries")).body.deliveries[0]?.error !== undefined);
  const [pending] = (await ask("/v1/webhooks/deliveries?status=pending")).body.deliveries;
  expect(delivery.parse(pending)).toMatchObject({ tries: 1, responseStatus: 500 });
  const refused = await ask(`/v1/webhooks/deliveries/${pending.deliveryId}/resend`, { method: "POST" });
  expect([refused.status, errorAnswer.parse(refused.body).code]).toEqual([409, "conflict"]);
  const tries = readMetrics((await ask("/metrics")).body).get("rota_webhook_deliveries_total")?.samples;
  expect([tries?.get('{outcome="retried"}'), tries?.get('{outcome="delivered"}')]).toEqual([1, 0]);
});

test.each([
  ["GET", "/v1/webhooks/deliveries/nope", 404, "not_found"],
  ["GET", "/v1/webhooks/deliveries/a%00b", 404, "not_found"],
  ["POST", "/v1/webhooks/deliveries/nope/resend", 404, "not_found"],
  ["GET", "/v1/webhooks/deliveries?status=lost", 400, "invalid_field"],
  ["GET", "/v1/webhooks/deliveries?status=failed&status=pending", 400, "invalid_field"],
  ["GET", "/v1/webhooks/deliveries?limit=0", 400, "invalid_field"],
  ["GET", "/v1/webhooks/deliveries?cursor=x", 400, "invalid_field"],
  ["GET", "/v1/webhooks/deliveries?taskId=%00", 400, "invalid_field"],
  ["GET", "/v1/webhooks/deliveries?task=1", 400, "invalid_field"],
])("%s %s is refused", async (method, path, status, code) => {
  const { ask } = await openTestServer({ start: false });
  const answer = await ask(path, { method });
  expect([answer.status, errorAnswer.parse(answer.body).code]).toEqual([status, code]);
});

import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import { eventually, newFolder, startServer } from "./server-process.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ENVIRONMENT = { ROTA_WEBHOOKS_ALLOW: "127.0.0.1", ROTA_WEBHOOK_SECRET: SECRET };

/** A receiver that verifies the signature, and responds 500 until the test changes that. */
async function startReceiver() {
  const received: { id: unknown; task: Record<string, unknown> }[] = [];
  const receiver = { status: 500 };
  const url = await serve((request, response, body) => {
    const task = new Webhook(SECRET).verify(body, request.headers as Record<string, string>);
    received.push({ id: request.headers["webhook-id"], task: task as Record<string, unknown> });
    response.writeHead(receiver.status).end();
  });
  return { url: `${url}/hook`, received, receiver };
}

test("a callback that failed is made by the next process after a kill -9, and again when asked for", async () => {
  const { url, received, receiver } = await startReceiver();
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  const first = await startServer({ storage, environment: ENVIRONMENT });
  const { body: submitted } = await first.ask("/tasks", { json: { message: "hello", callbackUrl: url } });
  const list = `/v1/webhooks/deliveries?taskId=${submitted.taskId}`;
  await eventually(
    async () => (await first.ask(list)).body.deliveries[0]?.responseStatus === 500,
    "a failure to be noted",
  );
  first.kill("SIGKILL");
  await first.ended;

  receiver.status = 200;
  const second = await startServer({ storage, environment: ENVIRONMENT });
  await eventually(
    async () => (await second.ask(list)).body.deliveries[0]?.status === "delivered",
    "the callback to be made",
  );
  const { deliveryId } = (await second.ask(list)).body.deliveries[0];
  const tries = received.length;
  const resent = await second.ask(`/v1/webhooks/deliveries/${deliveryId}/resend`, { method: "POST" });
  expect(resent).toMatchObject({ status: 202, body: { deliveryId, status: "pending" } });
  await eventually(() => received.length === tries + 1, "the callback once more");
  expect(new Set(received.map(({ id }) => id))).toEqual(new Set([deliveryId]));
  expect(received.at(-1)?.task).toMatchObject({ taskId: submitted.taskId, state: "done", result: "hello" });
  expect(second.stderr() + second.stdout()).not.toContain(SECRET.slice(6));
});

test("a callback within this machine is refused unless it is allowed, and a faulty secret is no start", async () => {
  const server = await startServer();
  const callbackUrl = "http://127.0.0.1:9/hook?token=secret";
  const { status, body } = await server.ask("/tasks", { json: { message: "hello", callbackUrl } });
  expect([status, body.code, body.details]).toEqual([400, "invalid_field", { field: "callbackUrl" }]);
  expect(body.error).toMatch(/127\.0\.0\.1, a loopback address: .*`outbound\.allow`/);
  expect(body.error).not.toContain("token");
  expect((await server.ask("/tasks/stats")).body.total).toBe(0);

  await expect(startServer({ environment: { ROTA_WEBHOOK_SECRET: "whsec_!" } })).rejects.toThrow(
    /ROTA_WEBHOOK_SECRET must be "whsec_" and the key in base64/,
  );
});

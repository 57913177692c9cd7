import { expect, test } from "vitest";
import { serve } from "../../test/support/http-server.ts";
import { openTestRota } from "../../test/support/rota.ts";
import { until } from "../testing/signals.ts";

const PASSWORD = "planted-password";
const payload = { user: "ann", password: PASSWORD };

/** A Rota that runs, with an agent that fails as it is asked to, and a receiver of callbacks. */
async function open(redact: string[] = ["password"]) {
  const bodies: string[] = [];
  const callbackUrl = await serve((_request, response, body) => {
    bodies.push(body);
    response.end();
  });
  const parts = await openTestRota({ options: { redact, webhooks: { allow: ["127.0.0.1"] } } });
  parts.rota.agent("leaky", async (task, { log }) => {
    log.info({ given: task.payload, error: new Error(`password=${PASSWORD}`) }, `password: ${PASSWORD}`);
    if (task.metadata?.["fails"] === true) throw new Error(JSON.stringify(task.payload));
    return task.payload;
  });
  await parts.rota.start();
  return { ...parts, bodies, callbackUrl };
}

test("secrets are masked in callbacks, also in those that are sent again", async () => {
  const { rota, bodies, callbackUrl } = await open();
  const { taskId } = await rota.tasks.submit({ agentId: "leaky", payload, callbackUrl });
  await until(() => bodies.length === 1, "a callback");
  const shown = { user: "ann", password: "…" };
  expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ taskId, payload: shown, result: shown });
  await until(async () => {
    const [delivery] = (await rota.webhooks.deliveries({ taskId })).deliveries;
    if (delivery?.status !== "delivered") return false;
    await rota.webhooks.resend(delivery.deliveryId);
    return true;
  }, "the callback to be noted");
  await until(() => bodies.length === 2, "the callback once more");
  expect(bodies.join()).not.toContain(PASSWORD);
});

test("secrets are masked in the log, also in what executors write to it", async () => {
  const { rota, log } = await open();
  const { taskId } = await rota.tasks.submit({ agentId: "leaky", payload, metadata: { fails: true } });
  await rota.tasks.wait(taskId);
  const lines = JSON.stringify(log.lines, (_name, value) =>
    value instanceof Error ? { message: value.message, stack: value.stack } : value,
  );
  expect(lines).toContain("password: …");
  expect(lines).toContain("an attempt failed");
  expect(lines).not.toContain(PASSWORD);
});

test("what is listed later is masked from then on, in what was stored before, too", async () => {
  const { rota } = await open([]);
  const { taskId } = await rota.tasks.submit({ agentId: "leaky", payload });
  expect((await rota.tasks.wait(taskId)).payload).toEqual(payload);
  expect(await rota.reload({ redact: ["PASSWORD"] })).toMatchObject({ changed: ["redact"] });
  expect(await rota.tasks.get(taskId)).toMatchObject({
    payload: { user: "ann", password: "…" },
    result: { user: "ann", password: "…" },
  });
  await rota.reload({ redact: [] });
  expect((await rota.tasks.get(taskId)).payload).toEqual(payload);
});

test("onEvent gets masked results, and an executor the unmasked results of dependencies", async () => {
  const { rota } = await open();
  const results: unknown[] = [];
  rota.onEvent((event) => {
    if (event.type === "task.completed") results.push(event.result);
  });
  let dependencies: unknown;
  rota.agent("next", async (task) => {
    dependencies = task.dependencies?.map(({ result }) => result);
  });
  const { taskId } = await rota.tasks.submit({ agentId: "leaky", payload });
  const next = await rota.tasks.submit({ agentId: "next", payload: 1, dependsOn: [taskId] });
  await rota.tasks.wait(next.taskId);
  await until(() => results.length === 2, "both events");
  expect(dependencies).toEqual([payload]);
  expect(results[0]).toEqual({ user: "ann", password: "…" });
});

test.each([
  [5, "`redact` must be an array of names"],
  [[""], "`redact.0` must be the name of a field"],
  [[5], "`redact.0` must be the name of a field"],
  [Array.from({ length: 101 }, (_, index) => `n${index}`), "`redact` must name at most 100"],
])("redact %j is refused", async (redact, message) => {
  const opened = openTestRota({ options: { redact: redact as never } });
  await expect(opened).rejects.toThrow(message);
});

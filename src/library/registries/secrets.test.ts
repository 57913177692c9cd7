import { expect, test } from "vitest";
import { serve } from "../../../test/support/http-server.ts";
import { nodeProgram } from "../../../test/support/programs.ts";
import { openTestRota } from "../../../test/support/rota.ts";
import { until } from "../../testing/signals.ts";

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

const MODEL_KEY = 'sk-planted\n"model" key';
const llmConfig = { provider: "p", apiKey: MODEL_KEY };

test.each([
  ["an error", { fails: true }],
  ["an answer", {}],
])("keys of a model are masked in the log, and in %s that repeats the task", async (_what, metadata) => {
  const { rota, clock, log, bodies, callbackUrl } = await open([]);
  const events: unknown[] = [];
  rota.onEvent((event) => void events.push(event));
  rota.agent("repeats", async (task, { log, progress }) => {
    log
      .child({ given: task.llmConfig })
      .info({ error: new Error(MODEL_KEY), deep: { task } }, `with ${MODEL_KEY}`);
    progress({ task });
    if (task.metadata?.["fails"] === true) throw new Error(`HTTP 500: ${JSON.stringify(task)}`);
    return { task, text: `my key is ${MODEL_KEY}` };
  });
  const input = { agentId: "repeats", instruction: "x", llmConfig, metadata, callbackUrl };
  const { taskId } = await rota.tasks.submit({ ...input, retryPolicy: { maxRetries: 0 } });
  const task = await rota.tasks.wait(taskId);
  await until(() => bodies.length === 1, "a callback");
  await clock.advance(1_000);
  await until(async () => (await rota.tasks.logs(taskId)).count === 1, "the line to be kept");
  const kept = await rota.tasks.logs(taskId);
  const lines = log.lines.map(({ fields, message }) => [
    Object.values(fields ?? {}).map((value) => (value instanceof Error ? value.stack : value)),
    message,
  ]);
  expect(JSON.stringify(lines)).toContain("with …");
  expect(JSON.stringify([task, bodies, events, lines, kept])).not.toContain("sk-planted");
});

test("a secret is masked where a line of a program, or the end of its output, is cut in the middle of it", async () => {
  const source = `let given = "";
    process.stdin.on("data", (data) => { given += data; }).on("end", () => {
      const { password } = JSON.parse(given);
      process.stderr.write("x".repeat(1990) + password + "\\n" + password + "y".repeat(1014), () => process.exit(1));
    });`;
  const executor = { type: "command", command: nodeProgram(source) } as const;
  const { rota, clock, log } = await openTestRota({
    options: { redact: ["password"], agents: { prog: { executor } } },
  });
  await rota.start();
  const { taskId } = await rota.tasks.submit({ agentId: "prog", payload });
  const task = await rota.tasks.wait(taskId);
  await clock.advance(1_000);
  await until(async () => (await rota.tasks.logs(taskId)).count === 2, "both lines to be kept");
  const { lines } = await rota.tasks.logs(taskId);
  expect(lines.map(({ text }) => text)).toEqual([`${"x".repeat(1_990)}…`, `…${"y".repeat(1_014)}`]);
  expect(task.error).toBe(`exit code 1: …${"y".repeat(1_014)}`);
  expect(JSON.stringify(log.lines)).not.toMatch(/planted|password"/);
});

test("a text that is shown with a mask is not submitted as it is shown", async () => {
  const { rota } = await open();
  const { taskId } = await rota.tasks.submit({ agentId: "leaky", payload: `user=ann password=${PASSWORD}` });
  const shown = "user=ann password=…";
  expect((await rota.tasks.wait(taskId)).payload).toBe(shown);
  expect((await rota.tasks.listRows()).tasks).toMatchObject([{ title: shown }]);
  await expect(rota.tasks.submit({ agentId: "leaky", payload: shown })).rejects.toThrow(
    "`payload` is masked: write the value",
  );
  const again = await rota.tasks.submitAgain(taskId, { agentId: "leaky", payload: shown });
  const handed = new Promise((resolve) => rota.agent("leaky", async (task) => resolve(task.payload)));
  await rota.tasks.wait(again.taskId);
  await rota.tasks.submitAgain(taskId, { agentId: "leaky", payload: shown });
  expect(await handed).toBe(`user=ann password=${PASSWORD}`);
});

test("params with a secret are submitted again only for the element that they were for", async () => {
  const { rota } = await open();
  const action = { agentId: "leaky", action: "fill", tabId: "bank", selector: "#password" };
  const { taskId } = await rota.tasks.submit({ ...action, params: { password: PASSWORD } });
  const shown = { ...action, params: { password: "…" } };
  for (const other of [{ tabId: "evil" }, { selector: "#comment" }, { action: "post" }, { ref: "e1" }]) {
    await expect(rota.tasks.submitAgain(taskId, { ...shown, ...other })).rejects.toThrow(
      "`params.password` is masked: write the value",
    );
  }
  const again = await rota.tasks.submitAgain(taskId, { ...shown, priority: "high" });
  expect((await rota.tasks.get(again.taskId)).params).toEqual({ password: "…" });
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

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStream } from "../support/event-stream.ts";
import { serve } from "../support/http-server.ts";
import { run } from "./commands.ts";
import { eventually, newFolder, startServer } from "./server-process.ts";

/** Whatever is planted has this in it. */
const PLANTED = "planted";

const SECRETS = {
  webhook: `whsec_${Buffer.from(`${PLANTED}-webhook-secret-of-32-bytes`).toString("base64")}`,
  model: `sk-${PLANTED}-model-key`,
  header: `${PLANTED}-header`,
  query: `${PLANTED}-query`,
  program: `${PLANTED}-program`,
};

/** A configuration with every kind of secret, and agents that fail in every way that could reveal one. */
async function plant() {
  const failing = await serve((_request, response) => response.writeHead(500).end("no"));
  const hangingUp = await serve((request) => request.socket.destroy());
  const headers = { authorization: `Bearer ${SECRETS.header}`, "x-api-key": SECRETS.header };
  const secretly = `?key=${SECRETS.query}`;
  const model = { type: "openai", model: "m", apiKeyEnv: "MODEL_KEY", headers };
  const agents = {
    failing: { executor: { type: "http", url: `${failing}/${secretly}`, headers } },
    "hanging-up": { executor: { type: "http", url: `${hangingUp}/${secretly}`, headers } },
    away: { executor: { type: "http", url: `http://127.0.0.1:1/${secretly}`, headers } },
    chatty: { executor: { type: "chat", url: failing, headers } },
    model: { executor: { ...model, baseUrl: `${failing}/v1` } },
    "model-away": { executor: { ...model, baseUrl: "http://127.0.0.1:1/v1" } },
    program: { executor: { type: "command", command: ["false"], env: { TOKEN: SECRETS.program } } },
  };
  const folder = newFolder();
  writeFileSync(
    join(folder, "rota.config.json"),
    JSON.stringify({ agents, webhooks: { allow: ["127.0.0.1"] } }),
  );
  return { folder, agents: Object.keys(agents), callbackUrl: `${failing}/hook` };
}

test("no key and no secret is in any log, event, error, response or callback that did not bring it", async () => {
  const { folder, agents, callbackUrl } = await plant();
  const storage = `sqlite:${join(folder, "rota.db")}`;
  const environment = { ROTA_WEBHOOK_SECRET: SECRETS.webhook, MODEL_KEY: SECRETS.model };
  const made = await run(["keys", "create", "--role", "admin", "--name", "me", "--storage", storage], {
    folder,
  });
  const key = made.stdout.trim();
  const server = await startServer({ storage, folder, environment });
  const ask = (path: string, init: Parameters<typeof server.ask>[1] = {}) =>
    server.ask(path, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  const events = await openStream(`${server.url}/tasks/events`, { authorization: `Bearer ${key}` });

  const shown: unknown[] = [];
  for (const agentId of agents) {
    const json = { agentId, message: "hello", callbackUrl, retryPolicy: { maxRetries: 0 } };
    shown.push((await ask("/tasks", { json })).body);
  }
  for (let ended = 0; ended < agents.length; ) {
    const frame = await events.next();
    shown.push(frame);
    if (frame?.event === "task.failed") ended += 1;
  }
  await eventually(
    async () => (await ask("/v1/webhooks/deliveries")).body.count > 0,
    "a callback to be tried",
  );
  const wrong = `rota_${"x".repeat(33)}${PLANTED}-0x`;
  for (const authorization of [`Bearer ${wrong}`, `Bearer ${PLANTED}`, `Basic ${PLANTED}`]) {
    shown.push((await ask("/tasks", { headers: { authorization } })).body);
  }
  // A key that is sent where none belongs is not repeated either.
  shown.push((await ask(`/tasks/${"x".repeat(20)}`, { headers: { "x-key": wrong } })).body);

  const { paths } = (await ask("/openapi.json")).body;
  const reads = Object.keys(paths).filter((path) => "get" in paths[path] && !/events$|stream$|\{/.test(path));
  expect(reads).toContain("/v1/config");
  for (const path of reads) shown.push([path, (await ask(path)).body]);
  for (const { taskId } of (await ask("/tasks")).body.tasks) shown.push((await ask(`/tasks/${taskId}`)).body);
  server.kill("SIGTERM");
  await server.ended;
  shown.push(server.stdout(), server.stderr());

  const text = JSON.stringify(shown);
  for (const secret of [PLANTED, key.slice(5), SECRETS.webhook, SECRETS.webhook.slice(6)]) {
    expect(text.includes(secret), text.slice(Math.max(text.indexOf(secret) - 200, 0)).slice(0, 300)).toBe(
      false,
    );
  }
  // What was looked through is what was meant to be.
  expect(text).toContain("HTTP 500: no");
  expect(text).toContain('"authorization":"…"');
});

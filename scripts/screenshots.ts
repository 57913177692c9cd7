/**
 * Makes the pictures of the README and of docs/dashboard.md: `npm run screenshots`. It plays an hour of `rota demo` in a minute, with a clock that it moves
 * itself, so that the charts have something to show; then a browser looks at it.
 */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium, type Page } from "playwright-core";
import { addDemoAgents } from "../src/cli/commands/demo-agents.ts";
import { openReceiver } from "../src/cli/commands/demo-receiver.ts";
import { DEMO_OPTIONS, DEMO_SESSION, playRounds, ROUND_MS } from "../src/cli/commands/demo-rounds.ts";
import { demoWorker, TRANSLATOR } from "../src/cli/commands/demo-worker.ts";
import { DashboardSource } from "../src/cli/dashboard/dashboard-source.ts";
import { RotaClient } from "../src/client/index.ts";
import { pause } from "../src/clock/pause.ts";
import { silentLog } from "../src/model/log.ts";
import { createRota } from "../src/rota.ts";
import { listen } from "../src/server/listen.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { findBrowser } from "../test/browser/find-browser.ts";

const FOLDER = join(import.meta.dirname, "..", "docs", "images");
const HOUR_MS = 3_600_000;
const STEP_MS = 500;
/** After the last step of a round: its backlog waits. */
const BACKLOG_MS = 2_500;
const SIZE = { width: 1_280, height: 860 } as const;
/** They are in the history of the repository for ever. */
const BYTES_MAX = 80 * 1_024;
const QUALITY = 80;

const clock = new ManualClock(Date.now() - HOUR_MS);
const world = {
  sleep: (ms: number, signal: AbortSignal) => pause(clock, ms, signal),
  random: seeded(7),
};

/** The same pictures every time, as far as the time of day allows. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

async function keep(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Live" }).waitFor();
  const file = join(FOLDER, `${name}.webp`);
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: file, type: "webp", quality: QUALITY });
  const { size } = statSync(file);
  if (size > BYTES_MAX) throw new Error(`${file} has ${size} bytes: more than ${BYTES_MAX}`);
  console.log(`${file}: ${Math.round(size / 1_024)} KB`);
}

const receiver = await openReceiver();
const rota = await createRota({ ...DEMO_OPTIONS, clock });
addDemoAgents(rota, world);
await rota.start();
const over = new AbortController();
const playing = playRounds(rota, {
  ...world,
  callbackUrl: receiver.url,
  hasWorker: false,
  signal: over.signal,
});
// Until it has caught up with the time, and a backlog waits.
for (let ms = 0; clock.now() < Date.now() || ms % ROUND_MS !== BACKLOG_MS; ms += STEP_MS) {
  await clock.advance(STEP_MS);
  // The callbacks are sent in real time.
  await sleep(2);
}

const dashboard = new DashboardSource({ basePath: "", environment: {}, log: silentLog });
await dashboard.open();
const server = await listen({
  rota,
  dashboard,
  config: () => DEMO_OPTIONS,
  log: silentLog,
  host: "127.0.0.1",
  port: 0,
});
// The clock stands still from now on: what the worker runs does not end.
const worker = demoWorker(server.url, world);
await worker.start();
for (const language of ["French", "Spanish"]) {
  await rota.tasks.submit({ agentId: TRANSLATOR, instruction: `Translate the manual into ${language}` });
}
const { path, environment } = await findBrowser();
const browser = await chromium.launch({
  executablePath: path,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  env: { ...process.env, ...environment },
});
try {
  const page = await browser.newPage({ viewport: SIZE, locale: "en-US", reducedMotion: "reduce" });
  // The clock stands still: what is due shall not be late on a slow machine.
  await page.clock.setFixedTime(clock.now());
  const show = async (name: string, path: string, shown: string) => {
    await page.goto(`${server.url}/ui${path}`);
    await page.locator(shown).first().waitFor();
    await keep(page, name);
  };
  await page.goto(`${server.url}/ui/`);
  await page.getByRole("heading", { name: "Why work waits" }).waitFor();
  await page.getByRole("img", { name: /^Tasks in the last hour/ }).waitFor();
  await keep(page, "overview");
  const waiting = await rota.tasks.list({ state: "queued", agentId: "greedy", limit: 20 });
  const ended = await rota.tasks.list({ agentId: "small", state: "done", limit: 20 });
  const batch = ended.tasks.find((task) => task.batchId);
  await show("task", `/tasks/${waiting.tasks[0]?.taskId}`, ".why-box");
  await show("tasks", "/tasks", ".lrow >> nth=5");
  await show("batch", `/batches/${batch?.batchId}`, ".dag");
  await show("session", `/session?key=${encodeURIComponent(DEMO_SESSION)}`, ".ans");
  await show("sessions", "/sessions", ".lrow");
  await show("schedules", "/schedules", "text=Price watch");
  await show("week", "/schedules?view=week", "text=Morning briefing");
  await show("lanes", "/lanes", "text=subagent");
  await show("agents", "/agents", "text=crawler");
  await show("workers", "/workers", "text=2 of 2");
  await show("nodes", "/nodes", ".node");
  await show("events", "/events", ".lrow >> nth=5");
  await show("webhooks", "/webhooks", ".lrow >> nth=5");
  await show("settings", "/settings", "text=workerCount");
  await page.goto(`${server.url}/ui/doctor`);
  await page.getByRole("button", { name: "Examine" }).click();
  await page.getByText("Nothing is wrong").waitFor();
  await keep(page, "doctor");
  await page.goto(`${server.url}/ui/tasks`);
  await page.getByRole("button", { name: "New task" }).click();
  await page.getByRole("dialog").locator("[name=message]").waitFor();
  await keep(page, "new-task");

  // With the first key the server asks for one, so these come last. Over HTTP, as people do it: the audit log has it.
  const { key } = await new RotaClient({ url: server.url }).keys.create({ role: "admin", name: "anna" });
  const admin = new RotaClient({ url: server.url, key });
  const { id } = await admin.tenants.create({ name: "acme", limits: { maxInflight: 20, maxQueued: 5_000 } });
  await admin.keys.create({ role: "operator", name: "gateway", tenantId: id });
  await admin.keys.create({ role: "operator", name: "ci" });
  await admin.keys.create({ role: "viewer", name: "grafana" });
  await admin.lanes.put("crawl", { concurrency: 8 });
  await page.addInitScript((key) => sessionStorage.setItem("rota.key", key), key);
  await show("tenants", "/tenants", "text=acme");
  await show("audit", "/audit", ".lrow");
  await show("keys", "/keys", "text=grafana");
} finally {
  over.abort();
  await browser.close();
  await worker.stop();
  await server.close();
  await rota.stop({ graceMs: 0 });
  await receiver.close();
  await playing;
}

/**
 * Makes the pictures of the README and of docs/dashboard.md: `npm run screenshots`. An hour of pretend work is played in some seconds, with a clock that is moved
 * by hand, so that the charts have something to show; then a browser looks at it.
 */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { DashboardSource } from "../src/cli/dashboard/dashboard-source.ts";
import type { Executor } from "../src/executors/executor.ts";
import type { Rota } from "../src/interface/rota.ts";
import type { SubmitInput } from "../src/model/input/submit-input.ts";
import { silentLog } from "../src/model/log.ts";
import { createRota } from "../src/rota.ts";
import { listen } from "../src/server/listen.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { findBrowser } from "../test/browser/find-browser.ts";

const FOLDER = join(import.meta.dirname, "..", "docs", "images");
const HOUR_MS = 3_600_000;
const STEP_MS = 5_000;
/** In the last part of the hour more comes than can be done. */
const BUSY_FROM = 0.82;
const SIZE = { width: 1_280, height: 860 } as const;
/** They are in the history of the repository for ever. */
const BYTES_MAX = 80 * 1_024;
const QUALITY = 80;

const clock = new ManualClock(Date.now() - HOUR_MS);
const random = seeded(7);

/** The same pictures every time, as far as the time of day allows. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Takes this long by the clock that is moved, and fails so often. */
function pretend(minMs: number, maxMs: number, failing = 0): Executor {
  return async (_task, { usage, log }) => {
    log.info({}, "begins");
    await new Promise<void>((resolve) => {
      clock.setTimer(minMs + random() * (maxMs - minMs), resolve);
    });
    usage({ inputTokens: Math.round(2_000 + random() * 9_000), outputTokens: Math.round(random() * 2_000) });
    if (random() < failing) throw new Error("HTTP 403: Checking your browser before accessing shop.example");
    return { ok: true };
  };
}

const INSTRUCTIONS: Readonly<Record<string, readonly string[]>> = {
  research: [
    "Compare prices of 12 laptop suppliers",
    "Summarize the Q3 filings of three competitors",
    "Find reviewers for the robotics paper",
    "Read 40 pages about the EU AI Act and list duties",
    "List open-source licences of our dependencies",
    "Check which conferences accept talks in May",
  ],
  crawler: [
    "Collect opening hours of 300 clinics",
    "Collect pricing pages of 12 suppliers",
    "Check 40 shops for price changes",
  ],
  support: ["Answer Anna about the refund of order 20931", "Draft replies to 9 tickets about late parcels"],
  writer: ["Translate the handbook to Portuguese", "Summarize stand-up notes of the platform team"],
};
const LANES: Readonly<Record<string, string>> = { support: "main", writer: "subagent" };
/** Who gets the next task, by chance. */
const AGENTS = ["research", "research", "research", "support", "support", "writer", "crawler"] as const;

function chosen<Item>(items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

function someTask(): SubmitInput {
  const agentId = chosen(AGENTS);
  return {
    agentId,
    instruction: chosen(INSTRUCTIONS[agentId] ?? []),
    priority: chosen(["normal", "normal", "normal", "high", "low"]),
    lane: LANES[agentId] ?? "tasks",
    // What the other side refuses, it refuses again.
    retryPolicy: { maxRetries: 0 },
  };
}

async function openRota(): Promise<Rota> {
  const rota = await createRota({
    storage: "sqlite::memory:",
    clock,
    scheduler: { workerCount: 10, maxInflight: 10, maxPerAgentInflight: 10, maxPerAgent: 1_000 },
    lanes: { main: 12, subagent: 16, cron: 6, team: 8 },
  });
  rota.agent("research", { maxInflight: 6 }, pretend(30_000, 80_000));
  rota.agent("support", pretend(4_000, 22_000));
  rota.agent("writer", pretend(20_000, 60_000));
  rota.agent("crawler", { maxInflight: 4 }, pretend(20_000, 60_000, 0.4));
  await rota.start();
  for (const [name, schedule, agent] of [
    ["Inbox triage", "*/30 * * * *", "support"],
    ["Price watch, 40 shops", "15 * * * *", "crawler"],
    ["Nightly competitor report", "30 2 * * *", "research"],
    ["Morning briefing", "0 6 * * 1-5", "writer"],
  ] as const) {
    await rota.schedules.create({ name, schedule, agent, instruction: name });
  }
  return rota;
}

/** Work comes in waves, and towards the end in a flood. */
async function play(rota: Rota): Promise<string> {
  for (let step = 0; step < HOUR_MS / STEP_MS; step++) {
    const part = (step * STEP_MS) / HOUR_MS;
    const wave = 0.9 + 0.5 * Math.sin(part * 14) + (part > BUSY_FROM ? 1.4 : 0);
    const count = Math.floor(wave + random());
    const inputs = Array.from({ length: count }, someTask);
    if (inputs.length > 0) await rota.tasks.submitMany(inputs);
    await clock.advance(STEP_MS);
  }
  await rota.tasks.submitMany(
    ["22:00", "the next release", "Monday"].map((time) => ({
      agentId: "support",
      message: `Remind Ravi of the contract renewal before ${time}`,
      runAt: new Date(clock.now() + HOUR_MS).toISOString(),
    })),
  );
  const batch = await rota.tasks.submitBatch({ tasks: [...REPORT] });
  for (const message of CHAT) {
    await rota.sessions.send("chat:anna", { message, agentId: "support" });
    await clock.advance(4 * STEP_MS);
  }
  // What was played took a while, too.
  clock.set(Date.now());
  await clock.advance(1);
  return batch.batchId;
}

/** A batch in which things wait for each other. */
const REPORT = [
  { key: "prices", agentId: "writer", instruction: "Collect prices of 40 shops" },
  { key: "stock", agentId: "writer", instruction: "Collect stock of 40 shops" },
  { key: "clean", agentId: "writer", instruction: "Clean the figures", dependsOn: ["prices", "stock"] },
  { key: "chart", agentId: "writer", instruction: "Draw the charts", dependsOn: ["clean"] },
  { key: "text", agentId: "writer", instruction: "Write the report", dependsOn: ["clean"] },
  { key: "send", agentId: "support", instruction: "Send the report", dependsOn: ["chart", "text"] },
] as const;

const CHAT = [
  "Where is my parcel? Order 20931.",
  "Can it go to the office instead?",
  "And when does the refund arrive?",
] as const;

const rota = await openRota();
const batchId = await play(rota);
const dashboard = new DashboardSource({ basePath: "", environment: {}, log: silentLog });
await dashboard.open();
const server = await listen({ rota, dashboard, log: silentLog, host: "127.0.0.1", port: 0 });
const { path, environment } = await findBrowser();
const browser = await chromium.launch({
  executablePath: path,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  env: { ...process.env, ...environment },
});
try {
  const page = await browser.newPage({ viewport: SIZE, locale: "en-US", reducedMotion: "reduce" });
  const keep = async (name: string) => {
    await page.getByRole("button", { name: "Live" }).waitFor();
    const file = join(FOLDER, `${name}.webp`);
    mkdirSync(FOLDER, { recursive: true });
    await page.screenshot({ path: file, type: "webp", quality: QUALITY });
    const { size } = statSync(file);
    if (size > BYTES_MAX) throw new Error(`${file} has ${size} bytes: more than ${BYTES_MAX}`);
    console.log(`${file}: ${Math.round(size / 1_024)} KB`);
  };
  await page.goto(`${server.url}/ui/`);
  await page.getByRole("heading", { name: "Why work waits" }).waitFor();
  await page.getByRole("img", { name: /^Tasks in the last hour/ }).waitFor();
  await keep("overview");
  const { tasks } = await rota.tasks.list({ state: "queued", agentId: "research", lane: "tasks", limit: 20 });
  await page.goto(`${server.url}/ui/tasks/${tasks.at(-1)?.taskId}`);
  await page.locator(".why-box").waitFor();
  await keep("task");
  for (const [name, path, shown] of [
    ["tasks", "/tasks", ".lrow >> nth=5"],
    ["batch", `/batches/${batchId}`, ".dag"],
    ["session", `/session?key=${encodeURIComponent("chat:anna")}`, ".ans"],
    ["schedules", "/schedules", "text=Inbox triage"],
    ["week", "/schedules?view=week", "text=Inbox triage"],
    ["lanes", "/lanes", "text=subagent"],
    ["agents", "/agents", "text=crawler"],
    ["events", "/events", ".lrow >> nth=5"],
  ] as const) {
    await page.goto(`${server.url}/ui${path}`);
    await page.locator(shown).first().waitFor();
    await keep(name);
  }
  await page.goto(`${server.url}/ui/tasks`);
  await page.getByRole("button", { name: "New task" }).click();
  await page.getByRole("dialog").locator("[name=message]").waitFor();
  await keep("new-task");
} finally {
  await browser.close();
  await server.close();
  await rota.stop({ graceMs: 0 });
}

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { RotaWorker } from "../../src/client/index.ts";
import { createRota, type Rota } from "../../src/index.ts";
import { silentLog } from "../../src/model/log.ts";
import { listen } from "../../src/server/listen.ts";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import { newFolder } from "../end-to-end/server-process.ts";
import { prepareDatabaseCopies } from "../postgres/database-copies.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** A heartbeat would come far too late for these tests. */
const RARELY = { leaseMs: 120_000, heartbeatMs: 60_000 };

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

async function openNode(storage: string): Promise<{ rota: Rota; url: string }> {
  const rota = await createRota({ storage });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  const server = await listen({ rota, host: "127.0.0.1", port: 0, log: silentLog });
  onTestFinished(() => server.close());
  await rota.start();
  return { rota, url: server.url };
}

/** A worker whose handler runs until it is aborted, and what it was aborted with. */
async function startWorker(url: string) {
  const aborted = Promise.withResolvers<string>();
  const worker = new RotaWorker({
    url,
    agents: {
      slow: (_task, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve(String((signal.reason as Error).message));
            reject(signal.reason);
          });
        }),
    },
    ...RARELY,
  });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  return { worker, aborted: aborted.promise };
}

async function submitAndRun(rota: Rota, worker: RotaWorker): Promise<string> {
  const { taskId } = await rota.tasks.submit({ agentId: "slow", message: "go" });
  await expect.poll(() => worker.running).toBe(1);
  return taskId;
}

test("a cancel aborts the handler of a RotaWorker at once, and its slot is free again", async () => {
  const { rota, url } = await openNode("sqlite::memory:");
  const { worker, aborted } = await startWorker(url);
  const taskId = await submitAndRun(rota, worker);
  await rota.tasks.cancel(taskId);
  expect(await aborted).toBe("cancelled");
  await expect.poll(() => worker.running).toBe(0);
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
});

test("a drain ends a RotaWorker at once, although it is busy", async () => {
  const { rota, url } = await openNode("sqlite::memory:");
  const { worker, aborted } = await startWorker(url);
  const taskId = await submitAndRun(rota, worker);
  await rota.workers.drain(worker.workerId ?? "");
  const { taskId: next } = await rota.tasks.submit({ agentId: "slow", message: "next" });
  await rota.tasks.cancel(taskId);
  await aborted;
  await expect.poll(async () => (await rota.workers.list()).workers).toEqual([]);
  expect(await rota.tasks.get(next)).toMatchObject({ state: "queued" });
});

describe("on two nodes", () => {
  test("a cancel and a drain on one reach a worker of the other at once", async () => {
    const { url: storage } = await copies.copy();
    const [front, back] = [await openNode(storage), await openNode(storage)];
    const { worker, aborted } = await startWorker(back.url);
    const taskId = await submitAndRun(front.rota, worker);
    await front.rota.tasks.cancel(taskId);
    expect(await aborted).toBe("cancelled");
    await expect.poll(() => worker.running).toBe(0);
    await front.rota.workers.drain(worker.workerId ?? "");
    await expect.poll(async () => (await front.rota.workers.list()).workers).toEqual([]);
  });
});

test.skipIf(PYTHON === null)(
  `a cancel and a drain reach a Python worker at once${NEEDS_PYTHON}`,
  async () => {
    const { rota, url } = await openNode("sqlite::memory:");
    const program = join(newFolder(), "worker.py");
    writeFileSync(
      program,
      [
        "import rota",
        "worker = rota.Worker(lease_ms=120_000, heartbeat_ms=60_000)",
        '@worker.agent("slow")',
        "def slow(task, context):",
        "    try:",
        "        context.sleep(100)",
        "    finally:",
        "        print(context.reason, flush=True)",
        "worker.run()",
      ].join("\n"),
    );
    const PYTHONPATH = join(ROOT, "clients", "python", "src");
    const child = spawn(PYTHON ?? "", [program], {
      env: { ...process.env, PYTHONPATH, ROTA_URL: url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
    });
    const { taskId } = await rota.tasks.submit({ agentId: "slow", message: "go" });
    await expect
      .poll(async () => (await rota.workers.list()).workers, { timeout: 10_000 })
      .toMatchObject([{ running: 1 }]);
    await rota.tasks.cancel(taskId);
    await expect.poll(() => said.trim(), { timeout: 5_000 }).toBe("cancelled");
    await rota.workers.drain((await rota.workers.list()).workers[0]?.id ?? "");
    await expect.poll(() => child.exitCode, { timeout: 5_000 }).toBe(0);
  },
);

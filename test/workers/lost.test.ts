import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, type TestContext, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Task } from "../../src/model/task.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { Chance } from "../chaos/chance.ts";
import { type LosingProxy, startLosingProxy } from "../chaos/workers/losing-proxy.ts";
import { createTestDatabase } from "../postgres/database.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** Of the workers. */
const LEASE_MS = 5_000;
const PAST_LEASE_MS = LEASE_MS + 4_000;
/** For a slow machine. */
const ROOM_MS = 5_000;

interface StartedWorker {
  readonly child: ChildProcess;
  readonly proxy: LosingProxy;
}

interface Scene {
  readonly client: RotaClient;
  /** Starts a worker behind a proxy of its own. */
  start(name: string, prepare?: (proxy: LosingProxy) => void): Promise<StartedWorker>;
  /** Submits tasks that take this long. */
  submit(count: number, ms: number): Promise<string[]>;
  /** The lines of the handlers, in order: task, attempt and worker. */
  lines(): string[];
}

/** The tests run at the same time: most of it they only wait. So each ends what it started by its own context. */
async function openScene(storage: string, { expect, onTestFinished }: TestContext): Promise<Scene> {
  const rota = await createRota({
    storage,
    agents: { slow: { executor: { type: "worker" } } },
    scheduler: { maxInflight: 100, maxPerAgentInflight: 100 },
  });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  const server = await listen({ rota, host: "127.0.0.1", port: 0, log: silentLog });
  onTestFinished(() => server.close());
  await rota.start();
  const client = new RotaClient({ url: server.url });
  const folder = mkdtempSync(join(tmpdir(), "rota-lost-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "lines.txt");
  const program = join(import.meta.dirname, "slow-worker.ts");
  return {
    client,
    async start(name, prepare = () => {}) {
      const proxy = await startLosingProxy([server.url], new Chance(1));
      onTestFinished(() => proxy.close());
      prepare(proxy);
      const args = ["--import", join(ROOT, "scripts", "from-source.ts"), program, proxy.url, name, file];
      const child = spawn(process.execPath, args, { stdio: "inherit" });
      onTestFinished(() => void child.kill("SIGKILL"));
      const isThere = async () =>
        (await client.workers.list()).workers.some((worker) => worker.name === name);
      await expect.poll(isThere).toBe(true);
      return { child, proxy };
    },
    async submit(count, ms) {
      const retryPolicy = { maxRetries: 3, backoffMs: 10 };
      const submitted = await Promise.all(
        Array.from({ length: count }, () =>
          client.tasks.submit({ agentId: "slow", payload: ms, retryPolicy }),
        ),
      );
      return submitted.map(({ taskId }) => taskId);
    },
    lines: () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []),
  };
}

const endOf = (client: RotaClient, ids: readonly string[]): Promise<Task[]> =>
  Promise.all(ids.map((id) => client.tasks.wait(id)));
const outcomesOf = ({ attempts }: Task) => attempts.map(({ outcome }) => outcome);

describe.concurrent.each(["sqlite", "postgres"] as const)("on %s", (storageName) => {
  async function openStorage(context: TestContext): Promise<Scene> {
    if (storageName === "sqlite") return openScene("sqlite::memory:", context);
    const database = await createTestDatabase();
    context.onTestFinished(() => database.drop());
    return openScene(database.url, context);
  }

  test("responses that are lost at every call cost no second attempt", {
    timeout: 60_000,
  }, async (context) => {
    const { expect } = context;
    const scene = await openStorage(context);
    const { child, proxy } = await scene.start("first", (prepared) => {
      for (const call of ["/v1/workers", "/claim", "/claim?finishes", "/heartbeat", "/finish"])
        prepared.loseNext(call, 2);
    });
    const ids = [...(await scene.submit(20, 5)), ...(await scene.submit(4, 1_500))];
    const tasks = await endOf(scene.client, ids);
    expect(tasks.map(outcomesOf)).toEqual(ids.map(() => ["done"]));
    expect(scene.lines()).toHaveLength(ids.length);
    expect((await scene.client.workers.list()).workers).toHaveLength(1);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    // A task has ended before the response to its finish is sent. A worker that has exited has received all responses.
    const { finishes } = proxy;
    expect(finishes.filter(({ recorded, repeated }) => recorded && !repeated)).toHaveLength(ids.length);
    expect(finishes.some(({ repeated }) => repeated)).toBe(true);
  });

  test("a response to a claim that never comes, on an open connection, costs no more than a lease", {
    timeout: 60_000,
  }, async (context) => {
    const { expect } = context;
    const scene = await openStorage(context);
    await scene.start("only", (proxy) => proxy.swallowNext("/claim", 1));
    const began = performance.now();
    const [task] = await endOf(scene.client, await scene.submit(1, 5));
    // The claim is repeated, and returns the same attempt.
    expect(task).toMatchObject({ result: "only", attempts: [{ number: 1, outcome: "done" }] });
    expect(performance.now() - began).toBeLessThan(LEASE_MS + ROOM_MS);
  });

  test("another worker takes over from one that is killed, stopped or cut off past its lease", {
    timeout: 90_000,
  }, async (context) => {
    const { expect } = context;
    const scene = await openStorage(context);
    const struck: Record<string, StartedWorker> = {};
    for (const name of ["killed", "stopped", "cut"]) struck[name] = await scene.start(name);
    // The worker with the fewest tasks gets the next, so each has one.
    const ids = await scene.submit(3, 2_000);
    await expect.poll(() => scene.lines().length).toBe(3);
    struck["killed"]?.child.kill("SIGKILL");
    struck["stopped"]?.child.kill("SIGSTOP");
    struck["cut"]?.proxy.freeze();
    const healAt = performance.now() + PAST_LEASE_MS;
    await scene.start("other");
    const tasks = await endOf(scene.client, ids);
    expect(tasks.map(({ result }) => result)).toEqual(["other", "other", "other"]);
    // One that was found earlier may have been assigned to another that was not found yet.
    for (const task of tasks) expect(outcomesOf(task).join(" ")).toMatch(/^(?:lost ){1,3}done$/);

    await sleep(Math.max(healAt - performance.now(), 0));
    struck["stopped"]?.child.kill("SIGCONT");
    struck["cut"]?.proxy.thaw();
    // It works on, and what it reports of the lost attempt changes nothing. The claim of the one that was cut off waits for an
    // answer that was swallowed, for a lease.
    await expect
      .poll(
        async () => {
          const more = await endOf(scene.client, await scene.submit(6, 200));
          return more.map(({ result }) => result);
        },
        { timeout: 30_000 },
      )
      .toContain("stopped");
    const lost = new Set(ids);
    for (const { proxy } of Object.values(struck))
      expect(proxy.finishes.filter(({ taskId, recorded }) => recorded && lost.has(taskId))).toEqual([]);
    // Each attempt ran once.
    expect(new Set(scene.lines()).size).toBe(scene.lines().length);
  });
});

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Task } from "../../src/model/task.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { Chance } from "../chaos/chance.ts";
import { type LosingProxy, startLosingProxy } from "../chaos/workers/losing-proxy.ts";
import { newFolder } from "../end-to-end/server-process.ts";
import { createTestDatabase } from "../postgres/database.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** Longer than the lease of the workers. */
const PAST_LEASE_MS = 4_000;

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

async function openScene(storage: string): Promise<Scene> {
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
  const file = join(newFolder(), "lines.txt");
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

describe.each(["sqlite", "postgres"] as const)("on %s", (storageName) => {
  async function openStorage(): Promise<Scene> {
    if (storageName === "sqlite") return openScene("sqlite::memory:");
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    return openScene(database.url);
  }

  test("answers that are lost at every call cost no second attempt", { timeout: 60_000 }, async () => {
    const scene = await openStorage();
    const { child, proxy } = await scene.start("first", (prepared) => {
      for (const call of ["/v1/workers", "/claim", "/heartbeat", "/finish"]) prepared.loseNext(call, 2);
    });
    const ids = [...(await scene.submit(20, 5)), ...(await scene.submit(4, 1_500))];
    const tasks = await endOf(scene.client, ids);
    expect(tasks.map(outcomesOf)).toEqual(ids.map(() => ["done"]));
    expect(scene.lines()).toHaveLength(ids.length);
    const { finishes } = proxy;
    expect(finishes.filter(({ recorded, repeated }) => recorded && !repeated)).toHaveLength(ids.length);
    expect(finishes.some(({ repeated }) => repeated)).toBe(true);
    expect((await scene.client.workers.list()).workers).toHaveLength(1);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("another worker takes over from one that was killed", { timeout: 60_000 }, async () => {
    const scene = await openStorage();
    const { child } = await scene.start("killed");
    const ids = await scene.submit(2, 1_000);
    await expect.poll(() => scene.lines().length).toBe(2);
    child.kill("SIGKILL");
    await scene.start("other");
    const tasks = await endOf(scene.client, ids);
    expect(tasks.map(({ result }) => result)).toEqual(["other", "other"]);
    for (const task of tasks)
      expect(outcomesOf(task)).toEqual([expect.stringMatching(/^(?:lost|interrupted)$/), "done"]);
  });

  test.each([
    [
      "stopped past its lease",
      async ({ child }: StartedWorker) => {
        child.kill("SIGSTOP");
        await sleep(PAST_LEASE_MS);
        child.kill("SIGCONT");
      },
    ],
    [
      "cut off past its lease",
      async ({ proxy }: StartedWorker) => {
        proxy.freeze();
        await sleep(PAST_LEASE_MS);
        proxy.thaw();
      },
    ],
  ])(
    "what a worker reports that was %s is not recorded, and it works on",
    { timeout: 60_000 },
    async (_what, strike) => {
      const scene = await openStorage();
      const late = await scene.start("late");
      const ids = await scene.submit(1, 3_000);
      await expect.poll(() => scene.lines().length).toBe(1);
      const striking = strike(late);
      await scene.start("other");
      const [task] = await endOf(scene.client, ids);
      expect(task?.result).toBe("other");
      expect(task?.attempts).toHaveLength(2);
      await striking;
      // Each attempt has one worker, and one handler ran for it.
      expect(new Set(scene.lines()).size).toBe(scene.lines().length);
      expect(late.proxy.finishes.filter(({ recorded }) => recorded)).toEqual([]);
      const more = await scene.submit(8, 600);
      const results = (await endOf(scene.client, more)).map(({ result }) => result);
      expect(new Set(results)).toEqual(new Set(["late", "other"]));
    },
  );
});

import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  expectAccessible,
  expectAccessibleEverywhere,
  expectFault,
  newPerson,
  newTenant,
  type TestTenant,
  type World,
} from "./world.ts";

function rowOf(page: Page, name: string) {
  return page.getByRole("table", { name: "Workers" }).locator(".lrow").filter({ hasText: name });
}

export function workersTests(world: () => World): void {
  /**
   * A worker that has claimed the two tasks of the agent `translator`, has ended the one with a payload and holds the other. It does
   * nothing by itself: a real one would end soon after it is drained.
   */
  const startWorker = async (tenant: TestTenant, name: string): Promise<string> => {
    const { key } = await world().rota.keys.create({
      role: "worker",
      name: "worker key",
      tenantId: tenant.id,
      agents: ["translator"],
    });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const ask = async (path: string, json: unknown) => {
      const url = `${world().url}/v1/workers${path}`;
      return (await fetch(url, { method: "POST", headers, body: JSON.stringify(json) })).json();
    };
    const labels = { gpu: "a100" };
    const own = { name, labels, version: "2.4.1", instanceId: randomUUID(), leaseMs: 120_000 };
    const { workerId } = await ask("", { ...own, agents: ["translator"], slots: 2 });
    const { attempts } = (await ask(`/${workerId}/claim`, { claimId: randomUUID(), max: 2, waitS: 5 })) as {
      attempts: { attemptToken: string; task: { payload?: unknown } }[];
    };
    const begun = attempts.map(({ attemptToken }) => ({ attemptToken }));
    await ask(`/${workerId}/heartbeat`, { attempts: begun });
    const done = attempts.filter(({ task }) => task.payload !== undefined);
    await ask(`/${workerId}/finish`, {
      attempts: done.map(({ attemptToken }) => ({ attemptToken, outcome: "done" })),
    });
    return workerId;
  };

  test("while there is none, the page shows how to start one in three languages", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("tenant-admin")).key });
    const page = await open("/tasks");
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByText("No worker is connected").waitFor();
    await page.getByRole("region", { name: "TypeScript" }).getByText("new RotaWorker").waitFor();
    await expectAccessibleEverywhere(page, "workers-none");
    await page.getByText("Python", { exact: true }).click();
    await page.getByRole("region", { name: "Python" }).getByText("rota.Worker").waitFor();
    await page.getByText("sh", { exact: true }).click();
    await page.getByRole("region", { name: "sh" }).getByText("rota worker").waitFor();
    await page.getByRole("main").getByRole("link", { name: "Keys" }).click();
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
  });

  test("a worker appears, shows what it runs, is drained and removed", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.agents.create({ id: "translator", executor: { type: "worker" } });
    const { taskId } = await tenant.rota.tasks.submit({
      agentId: "translator",
      message: "Translate the letter",
    });
    await tenant.rota.tasks.submit({ agentId: "translator", payload: "a result" });
    const id = await startWorker(tenant, "gpu-7");
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/agents");
    // From an agent to its workers, to one of them, to what it runs, and back from there.
    await page.getByRole("link", { name: "1 worker" }).click();
    await rowOf(page, "gpu-7").getByText("1 of 2").waitFor();
    await rowOf(page, "gpu-7").getByText("Busy").waitFor();
    await rowOf(page, "gpu-7").getByText("1 done").waitFor();
    await rowOf(page, "gpu-7").getByText("2.4.1").waitFor();
    expect(new URL(page.url()).search).toBe("?agentId=translator");
    await expectAccessibleEverywhere(page, "workers");
    await page.getByRole("textbox", { name: "Agent" }).fill("another");
    await page.keyboard.press("Enter");
    await page.getByText("No worker matches").waitFor();
    await page.getByRole("button", { name: "Remove all filters" }).click();
    await rowOf(page, "gpu-7").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "gpu-7", level: 1 }).waitFor();
    await page.getByRole("meter", { name: "1 of 2 slots in use" }).waitFor();
    await page.getByText("gpu=a100").waitFor();
    await expectAccessibleEverywhere(page, "worker");
    await page.getByRole("link", { name: "Translate the letter" }).click();
    await page.getByRole("heading", { name: "Translate the letter" }).waitFor();
    await page.getByRole("complementary", { name: "Details" }).getByRole("link", { name: "wrk_" }).click();
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByText("Draining", { exact: true }).waitFor();
    expect((await tenant.rota.workers.get(id)).state).toBe("draining");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("1 task of it goes back").waitFor();
    await page.getByRole("button", { name: "Remove worker" }).click();
    await page.getByText("Removed worker gpu-7; 1 task back in the queue").waitFor();
    await page.getByText("No worker is connected").waitFor();
    expect((await tenant.rota.tasks.get(taskId)).state).toBe("queued");
    await page.goBack();
    await page.getByText("There is no such worker").waitFor();
  });

  test("a viewer has no buttons, and lost, silent and unknown states are shown", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const info = {
      agents: ["*"],
      slots: 4,
      running: 0,
      lastSeenAt: "2026-01-01T00:00:00Z",
      version: null,
      runtime: null,
      labels: {},
      doneLast10m: 0,
      failedLast10m: 3,
    };
    const workers = ["lost", "not_polling", "asleep"].map((state) => ({
      ...info,
      id: `wrk_${state}`,
      name: `worker ${state}`,
      state,
    }));
    await context.route(/\/v1\/workers\?/, (route) =>
      route.fulfill({ json: { workers, count: workers.length, nextCursor: null } }),
    );
    await context.route("**/v1/workers/*", (route) => route.fulfill({ json: workers[1] }));
    const page = await open("/workers");
    await rowOf(page, "worker lost").getByText("Lost", { exact: true }).waitFor();
    await rowOf(page, "worker asleep").getByText("asleep", { exact: true }).waitFor();
    await rowOf(page, "worker not_polling").getByText("3 failed").waitFor();
    expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
    await rowOf(page, "worker not_polling").getByRole("link").click();
    await page.getByText("although it has free slots").waitFor();
    await page.getByText("It runs no task.").waitFor();
    expect(
      await page
        .getByRole("main")
        .getByRole("button", { name: /Drain|Remove/ })
        .count(),
    ).toBe(0);
    await expectAccessible(page);
  });

  test("a task without a worker says so, with a way to its workers", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.agents.create({ id: "translator", executor: { type: "worker" } });
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "translator", message: "hello" });
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open(`/tasks/${taskId}`);
    await page.getByText("No worker runs agent translator.").waitFor();
    await page.getByRole("link", { name: "See its workers" }).click();
    await page.getByRole("region", { name: "TypeScript" }).getByText('"translator"').waitFor();
    expect(new URL(page.url()).search).toBe("?agentId=translator");
    for (const [path, what] of [
      ["/workers", "The workers"],
      ["/workers/wrk_1", "The worker"],
    ] as const) {
      await expectFault({ page, path: `${world().url}/ui${path}`, url: "**/v1/workers**", what });
      await page.unrouteAll({ behavior: "ignoreErrors" });
    }
  });
}

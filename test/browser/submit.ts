import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible, expectAccessibleEverywhere, newPerson, newTenant, type World } from "./world.ts";

function fieldOf(page: Page, name: string) {
  return page.getByRole("dialog").locator(`[name="${name}"]`);
}

async function submit(page: Page, action = "Submit"): Promise<void> {
  await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
}

export function submitTests(world: () => World): void {
  test("it cannot be sent before its fields are there", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    const { promise, resolve: respond } = Promise.withResolvers<void>();
    await page.route(/openapi/, async (route) => {
      await promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "New task" }).click();
    await page.getByText("Reading the fields").waitFor();
    const button = page.getByRole("dialog").getByRole("button", { name: "Submit", exact: true });
    expect(await button.isDisabled()).toBe(true);
    respond();
    await fieldOf(page, "message").fill("once they are");
    await submit(page);
    await page.getByRole("heading", { name: "once they are" }).waitFor();
  });

  test("a task of each kind, and a batch, with any field that the server takes", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    const begin = async (kind: string) => {
      await page.getByRole("link", { name: "Tasks" }).first().click();
      await page.getByRole("button", { name: "New task" }).click();
      await page.getByRole("dialog").getByLabel(kind, { exact: true }).check();
    };
    const submitted = async () => {
      await page.waitForURL(/\/tasks\/tsk_/);
      return tenant.rota.tasks.get(new URL(page.url()).pathname.split("/").at(-1) ?? "");
    };
    await page.getByRole("button", { name: "New task" }).waitFor();

    await begin("instruction");
    await fieldOf(page, "instruction").fill("Say hello");
    await fieldOf(page, "llmConfig").fill('{"model": "small"}');
    await fieldOf(page, "priority").fill("high");
    await page.getByText("More fields").click();
    await fieldOf(page, "runAt").fill("2090-01-31T09:00");
    await fieldOf(page, "retryPolicy.maxRetries").fill("7");
    await fieldOf(page, "preemptible").selectOption("true");
    await page.getByText("Milliseconds for each attempt").waitFor();
    await expectAccessibleEverywhere(page, "new-task");
    await submit(page);
    expect(await submitted()).toMatchObject({
      instruction: "Say hello",
      llmConfig: { model: "small" },
      priority: 1,
      retryPolicy: { maxRetries: 7 },
      preemptible: true,
      state: "delayed",
    });

    await begin("action");
    await fieldOf(page, "action").fill("click");
    await fieldOf(page, "tabId").fill("8f9c");
    await fieldOf(page, "agentId").fill("held");
    await submit(page);
    expect(await submitted()).toMatchObject({ action: "click", tabId: "8f9c", agentId: "held" });

    await begin("payload");
    await fieldOf(page, "payload").fill('{"n": 1}');
    await submit(page);
    expect(await submitted()).toMatchObject({ payload: { n: 1 } });

    await begin("batch");
    await fieldOf(page, "parallelism").fill("1");
    await submit(page);
    await page.waitForURL(/\/batches\/bat_/);
    const batch = await tenant.rota.tasks.getBatch(new URL(page.url()).pathname.split("/").at(-1) ?? "");
    expect(batch.tasks.map(({ key }) => key)).toEqual(["read", undefined]);
  });

  test("what the server refuses is said at its fields, all at once, and the first has the focus", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    await page.getByRole("button", { name: "New task" }).first().click();
    await fieldOf(page, "message").fill("hello");
    await page.getByText("More fields").click();
    await fieldOf(page, "callbackUrl").fill("nowhere");
    await fieldOf(page, "sessionKey").fill("x".repeat(600));
    await page.getByText("More fields").click();
    await submit(page);
    const wrong = page.locator("[aria-invalid=true]");
    await expect
      .poll(() => wrong.evaluateAll((all) => all.map((it) => it.getAttribute("name"))))
      .toEqual(["callbackUrl", "sessionKey"]);
    expect(await page.getByRole("alert").count()).toBe(2);
    await page.locator("[name=callbackUrl]:focus, [name=sessionKey]:focus").waitFor();
    await expectAccessible(page);
    await fieldOf(page, "callbackUrl").fill("");
    await fieldOf(page, "sessionKey").fill("chat:ben");
    await submit(page);
    await page.getByRole("heading", { name: "hello" }).waitFor();
    expect((await tenant.rota.tasks.list()).tasks).toHaveLength(1);
  });

  test("the first message of a session, and a schedule with fields that its form does not show at first", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/sessions");
    await page.getByRole("button", { name: "New session" }).click();
    await fieldOf(page, "key").fill("chat:anna");
    await fieldOf(page, "message").fill("Where is my parcel?");
    await submit(page, "Begin");
    await page.locator(".ans", { hasText: "Where is my parcel?" }).waitFor();

    const schedules = await open("/schedules");
    await schedules.getByRole("button", { name: "New schedule" }).first().click();
    await schedules.getByLabel("When", { exact: true }).fill("every day at 09:00");
    await schedules.getByRole("textbox", { name: "Message" }).fill("Sum up the news");
    await schedules.getByText("More fields").click();
    await fieldOf(schedules, "max_runs").fill("3");
    await fieldOf(schedules, "retry.max_retries").fill("1");
    await submit(schedules, "Create schedule");
    await schedules.waitForURL(/\/schedules\/\d+/);
    const { schedules: stored } = await tenant.rota.schedules.list();
    expect(stored).toMatchObject([{ max_runs: 3, retry: { max_retries: 1 } }]);
  });

  test("the fields that cannot be read are said, with a way to try again; an agent submits for itself only", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("agent", "index");
    const { context, open } = await newPerson(world(), { key });
    let isBroken = true;
    await context.route("**/openapi.json", (route) =>
      isBroken ? route.fulfill({ status: 500, json: {} }) : route.fallback(),
    );
    const page = await open("/tasks");
    await page.getByRole("button", { name: "New task" }).click();
    await page.getByText("The fields could not be read").waitFor();
    isBroken = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await fieldOf(page, "message").fill("mine");
    expect(await fieldOf(page, "agentId").getAttribute("readonly")).not.toBeNull();
    await submit(page);
    await page.getByRole("heading", { name: "mine" }).waitFor();
  });
}

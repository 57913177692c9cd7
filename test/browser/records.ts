import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  expectAccessible,
  expectAccessibleEverywhere,
  expectFault,
  goTo,
  newPerson,
  newTenant,
  type TestTenant,
  type World,
} from "./world.ts";

function rowsOf(page: Page, table: string) {
  return page.getByRole("table", { name: table, exact: true }).locator(".lrow");
}

/** A batch in which one task fails, one runs and others wait for it. */
async function submitGraph({ rota }: TestTenant): Promise<string> {
  const { batchId } = await rota.tasks.submitBatch({
    agentId: "counted",
    tasks: [
      { key: "fetch", message: "Fetch the price lists" },
      { key: "check", message: "Check them", agentId: "broken", dependsOn: ["fetch"] },
      { key: "report", message: "Write the report", agentId: "held", dependsOn: ["fetch"] },
      { key: "mail", message: "Mail it", dependsOn: ["report"] },
    ],
  });
  await expect.poll(async () => (await rota.tasks.getBatch(batchId)).counts.failed).toBe(1);
  return batchId;
}

/** What happens to tasks, and where it is sent: batches, agents, events and deliveries. */
export function recordsTests(world: () => World): void {
  const openAs = async (tenant: TestTenant, role: "viewer" | "operator", path: string) =>
    (await newPerson(world(), { key: (await tenant.key(role)).key })).open(path);

  test("a batch shows its graph, what it waits for, and is retried and cancelled", async () => {
    const tenant = await newTenant(world());
    const batchId = await submitGraph(tenant);
    const page = await openAs(tenant, "operator", `/batches/${batchId}`);
    await page.getByText("Critical path: fetch → report.").waitFor();
    await rowsOf(page, "Tasks").filter({ hasText: "the other side hung up" }).waitFor();
    expect(await page.locator(".dag rect").count()).toBe(4);
    expect(await page.locator(".dag .e.critical").count()).toBe(1);
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "batch");
    await page.getByRole("button", { name: "Retry failed" }).click();
    await page.getByText("Retrying 1 task").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel 2 tasks" }).click();
    await page.getByText("Cancelled 2 tasks").waitFor();
    await page.getByRole("link", { name: /^Cancelled 2/ }).click();
    await page.getByRole("link", { name: "Write the report" }).waitFor();
    await page.getByRole("link", { name: "Write the report" }).click();
    await page.getByRole("link", { name: /^Batch bat_/ }).click();
    await page.getByRole("heading", { name: "Graph" }).waitFor();
    await goTo(page, "/ui/events");
    await page.getByRole("heading", { name: "Events", level: 1 }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type(batchId);
    await page.getByRole("option", { name: `Batch ${batchId}` }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Graph" }).waitFor();
  });

  test("a batch of a viewer has no buttons, one without dependencies says so, and one that is gone, too", async () => {
    const tenant = await newTenant(world());
    const { batchId } = await tenant.rota.tasks.submitBatch({
      tasks: [{ message: "alone", agentId: "held" }],
    });
    const page = await openAs(tenant, "viewer", `/batches/${batchId}`);
    await page.getByText("No task of this batch waits for another one of it.").waitFor();
    expect(await page.getByRole("button", { name: /Retry|Cancel/ }).count()).toBe(0);
    const gone = await openAs(tenant, "viewer", "/batches/bat_nowhere");
    await gone.getByText("There is no such batch").waitFor();
    await expectAccessible(gone);
  });

  test("agents show their work, and operators create, change and delete them", async () => {
    const tenant = await newTenant(world());
    const page = await openAs(tenant, "operator", "/agents");
    await rowsOf(page, "Agents").filter({ hasText: "index" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await tenant.rota.tasks.submit({ agentId: "held", message: "it runs" });
    await rowsOf(page, "Agents")
      .first()
      .filter({ hasText: "held" })
      .getByText("1", { exact: false })
      .waitFor();
    await page.keyboard.press("n");
    await page.getByRole("textbox", { name: /^id/ }).fill("writer");
    const executor = page.getByRole("combobox", { name: /^executor/ });
    await executor.selectOption("http");
    await page.getByRole("textbox", { name: /^url/ }).fill("https://agents.example.com/writer");
    await page.getByRole("textbox", { name: /^headers/ }).fill("none");
    await page.getByRole("button", { name: "Create agent" }).click();
    await page.getByRole("alert").getByText("executor.headers is not JSON").waitFor();
    await expectAccessible(page);
    await executor.selectOption("echo");
    expect(await page.getByRole("textbox", { name: /^url/ }).count()).toBe(0);
    await page.getByRole("spinbutton", { name: /^maxInflight/ }).fill("2");
    await page.getByRole("button", { name: "Create agent" }).click();
    await page.getByText("Created agent writer").waitFor();
    await page.getByRole("button", { name: "Edit writer" }).click();
    await page.getByRole("spinbutton", { name: /^maxInflight/ }).fill("3");
    await page.getByRole("button", { name: "Save" }).click();
    const writer = rowsOf(page, "Agents").filter({ hasText: "writer" });
    await writer.getByText("0 of 3").waitFor();
    await writer.getByText("echo").waitFor();
    await expectAccessibleEverywhere(page, "agents");
    await page.getByRole("button", { name: "Delete writer" }).click();
    await page.getByRole("button", { name: "Delete agent" }).click();
    await page.getByText("Deleted agent writer").waitFor();
    const viewer = await openAs(tenant, "viewer", "/agents");
    await rowsOf(viewer, "Agents").filter({ hasText: "index" }).waitFor();
    expect(await viewer.getByRole("button", { name: /New agent|Edit|Delete/ }).count()).toBe(0);
    await viewer.getByRole("link", { name: "held" }).click();
    await viewer.getByText("it runs").waitFor();
  });

  test("events come on top, are filtered in the address, and a long log draws only what is seen", async () => {
    const tenant = await newTenant(world());
    const viewer = await openAs(tenant, "viewer", "/events");
    await viewer.getByText("Nothing happened yet").waitFor();
    await expectAccessible(viewer);
    await viewer.getByRole("button", { name: "Live" }).waitFor();
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "broken", message: "fails" });
    await rowsOf(viewer, "Events").filter({ hasText: "the other side hung up" }).waitFor();
    for (let batch = 0; batch < 2; batch += 1) {
      const tasks = Array.from({ length: 90 }, () => ({ message: "many", runAt: "2100-01-01T00:00:00Z" }));
      await tenant.rota.tasks.submitBatch({ tasks });
    }
    await expect
      .poll(() => viewer.getByRole("table", { name: "Events" }).getAttribute("aria-rowcount"))
      .not.toBe("4");
    expect(await rowsOf(viewer, "Events").count()).toBeLessThan(100);
    await viewer.getByLabel("Type").selectOption("task.failed");
    await expect.poll(() => rowsOf(viewer, "Events").count()).toBe(1);
    await viewer.reload();
    await rowsOf(viewer, "Events").filter({ hasText: "the other side hung up" }).waitFor();
    expect(new URL(viewer.url()).search).toBe("?type=task.failed");
    await viewer.getByRole("textbox", { name: "Task" }).fill("tsk_nowhere");
    await viewer.keyboard.press("Enter");
    await viewer.getByText(/No event matches/).waitFor();
    await viewer.goBack();
    await rowsOf(viewer, "Events").first().waitFor();
    await viewer.getByLabel("Up to").fill("2020-01-01T00:00");
    await viewer.getByLabel("Up to").press("Enter");
    await viewer.getByText(/No event matches/).waitFor();
    expect(new URL(viewer.url()).search).toMatch(/^\?type=task\.failed&before=\d+$/);
    await viewer.getByRole("button", { name: "Show the newest events" }).click();
    await rowsOf(viewer, "Events").first().waitFor();
    await viewer.locator("#content").focus();
    await viewer.keyboard.press("j");
    await viewer.keyboard.press("Enter");
    await viewer.waitForURL(`**/tasks/${taskId}`);
  });

  test("events are accessible with much in them, and paused ones stay as they are until they go on", async () => {
    const tenant = await newTenant(world());
    await submitGraph(tenant);
    const page = await openAs(tenant, "viewer", "/events");
    await rowsOf(page, "Events").filter({ hasText: "failed" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "events");
    const first = await rowsOf(page, "Events").count();
    await tenant.rota.tasks.submit({ agentId: "held", message: "comes live" });
    await expect.poll(() => rowsOf(page, "Events").count()).toBe(first + 2);
    await page.keyboard.press("p");
    await page.getByText("Live updates are paused").waitFor();
    // Also what has come live stays.
    const before = await rowsOf(page, "Events").count();
    expect(before).toBe(first + 2);
    const done = tenant.rota.tasks.submit({ agentId: "broken", message: "meanwhile" });
    await done;
    await expect.poll(async () => (await tenant.rota.eventPage({ type: "task.failed" })).count).toBe(2);
    await page.getByRole("button", { name: /^\d new$/ }).waitFor();
    expect(await rowsOf(page, "Events").count()).toBe(before);
    await page.getByRole("button", { name: "Go on live" }).click();
    await expect.poll(() => rowsOf(page, "Events").count()).toBeGreaterThan(before);
  });

  test("deliveries show the response of the receiver, and roles that may send them again can", async () => {
    const tenant = await newTenant(world());
    const viewer = await openAs(tenant, "viewer", "/webhooks");
    await viewer.getByText("No callbacks yet").waitFor();
    await expectAccessible(viewer);
    await tenant.rota.tasks.submit({ message: "done", callbackUrl: `${world().url}/nowhere?token=secret` });
    await rowsOf(viewer, "Webhook deliveries").filter({ hasText: "HTTP 401" }).waitFor();
    expect(await viewer.getByText("secret").count()).toBe(0);
    expect(await viewer.getByRole("button", { name: "Send again" }).count()).toBe(0);
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    // The retries of the real one take a minute.
    await context.route("**/v1/webhooks/deliveries?*", async (route) => {
      const answer = await (await route.fetch()).json();
      const [first] = answer.deliveries;
      const status = new URL(route.request().url()).searchParams.get("status");
      const all = Array.from({ length: status === "pending" ? 0 : 300 }, (_each, index) => ({
        ...first,
        deliveryId: index === 0 ? first.deliveryId : `dlv_${index}`,
        status: index % 2 === 0 ? "failed" : "delivered",
      }));
      await route.fulfill({ json: { ...answer, deliveries: all } });
    });
    await context.route("**/resend", (route) => route.fulfill({ status: 202, json: {} }));
    const page = await open("/webhooks");
    await rowsOf(page, "Webhook deliveries").first().waitFor();
    expect(await rowsOf(page, "Webhook deliveries").count()).toBeLessThan(100);
    await page.getByRole("button", { name: "Send again" }).first().click();
    await page.getByText("Sent again").waitFor();
    await expectAccessibleEverywhere(page, "webhooks");
    await page.getByLabel("Status").selectOption("pending");
    await page.getByText("No delivery matches").waitFor();
    await page.getByRole("button", { name: "Remove all filters" }).click();
    await rowsOf(page, "Webhook deliveries").first().waitFor();
  });

  test("an error of any page is said with a way to try again", async () => {
    const page = await openAs(await newTenant(world()), "viewer", "/tasks");
    for (const [path, url, what] of [
      ["/agents", "**/v1/agents**", "The agents"],
      ["/events", "**/v1/events**", "The events"],
      ["/webhooks", "**/v1/webhooks/deliveries**", "The deliveries"],
      ["/batches/bat_1", "**/tasks/batches/**", "The batch"],
      ["/schedules?view=week", "**/v1/runs**", "The week"],
    ] as const) {
      await expectFault({ page, path: `${world().url}/ui${path}`, url, what });
    }
  });
}

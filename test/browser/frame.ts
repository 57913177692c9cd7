import { expect, test } from "vitest";
import { expectAccessible, listenBelow, newPerson, newTenant, type World } from "./world.ts";

export function frameTests(world: () => World): void {
  test("/ leads a browser to the first page, and who is signed in is shown", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("viewer");
    const { newTab } = await newPerson(world(), { key });
    const page = await newTab();
    await page.goto(world().url);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/ui\//);
    const { name } = await world().rota.tenants.get(tenant.id);
    await page.getByRole("button", { name: `${name} viewer · viewer key` }).click();
    await page.getByRole("dialog").getByText(world().rota.node).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });

  test("the theme is switched and kept", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { open } = await newPerson(world(), { key });
    const page = await open("/tasks");
    await page.getByRole("button", { name: "Switch theme" }).click();
    expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
    await page.reload();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe("dark");
  });

  test("the palette goes to a task by its id and to pages by their names, by keyboard alone", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("viewer");
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "held", message: "found by its id" });
    const { open } = await newPerson(world(), { key });
    const page = await open("/tasks");
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search or jump to" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.type(taskId);
    await page.getByRole("option", { name: `Task ${taskId}` }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "found by its id" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  });

  test("the palette finds agents, sessions and schedules, opens forms, and shows times in UTC", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("operator");
    await tenant.rota.agents.create({ id: "research-desk" });
    await tenant.rota.sessions.send("chat:research-weekly", { message: "Hello" });
    const schedule = { name: "Research digest", schedule: "every day at 06:00", message: "Write it" };
    await tenant.rota.schedules.create(schedule);
    const { open } = await newPerson(world(), { key });
    const page = await open("/tasks");
    await page.getByRole("link", { name: "Hello" }).waitFor();
    const find = async (text: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or jump to" }).fill(text);
    };
    await find("research");
    await page.getByRole("option", { name: "Agent research-desk" }).waitFor();
    await page.getByRole("option", { name: "Session chat:research-weekly" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("option", { name: "Schedule Research digest" }).click();
    await page.getByRole("heading", { name: "Research digest" }).waitFor();
    await find("new agent");
    // Also on the page where its form is.
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "New agent" }).waitFor();
    await page.keyboard.press("Escape");
    await find("new key");
    expect(await page.getByRole("option", { name: "New key", exact: true }).count()).toBe(0);
    await page.keyboard.press("Escape");
    await find("UTC");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Tasks", exact: true }).first().click();
    const time = page.locator(".lrow time").first();
    await expect.poll(() => time.getAttribute("title")).toMatch(/ UTC, /);
    await page.reload();
    await page.locator(".tenant").click();
    expect(await page.getByLabel("Times in").inputValue()).toBe("utc");
  });

  test("a page that does not exist says so, and a phone reaches every page", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { open } = await newPerson(world(), { key, width: 360 });
    const page = await open("/nowhere");
    await page.getByText("There is no such page").waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await expectAccessible(page);
    await page.getByRole("navigation", { name: "All pages" }).getByRole("link", { name: "Tasks" }).click();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
  });

  test("a page that breaks says so, and the others still work", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { context, open } = await newPerson(world(), { key });
    // React reports to the console what the page says, too.
    context.removeAllListeners("console");
    await context.route("**/v1/lanes", (route) => route.fulfill({ json: {} }));
    const page = await open("/lanes");
    await page.getByRole("heading", { name: "This page is broken" }).waitFor();
    await page.getByRole("link", { name: "Tasks" }).click();
    await page.getByText("No tasks yet").waitFor();
  });

  test("below the path of a proxy it works, whether the proxy cuts the path off or not", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submit({ agentId: "held", message: "behind a proxy" });
    const { key } = await tenant.key("operator");
    const url = await listenBelow(world(), "/rota");
    const { newTab } = await newPerson(world(), { key, url, basePath: "/rota" });
    const page = await newTab();
    await page.goto(`${url}/rota`);
    await page.waitForURL(`${url}/rota/ui/`);
    await page.getByRole("link", { name: /^Running 1/ }).click();
    await page.getByRole("link", { name: "behind a proxy" }).click();
    await page.getByRole("heading", { name: "behind a proxy" }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/rota\/ui\/tasks\/tsk_/);
    await page.reload();
    await page.getByRole("button", { name: "Live" }).waitFor();
    const direct = await newTab();
    await direct.goto(`${url}/ui/tasks`);
    await direct.getByText("behind a proxy").waitFor();
  });

  test("a server that goes away is noticed, and so is that it is back", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { context, open } = await newPerson(world(), { key });
    let isCut = true;
    await context.route("**/health", (route) => {
      if (isCut) return route.abort();
      return route.fulfill({
        json: {
          status: "ok",
          version: "0",
          state: "draining",
          startedAt: new Date().toISOString(),
          storage: "unavailable",
          storageError: "disk full",
          scheduler: "disabled",
          config: { ok: false, error: "`lanes` must be an object" },
        },
      });
    });
    const page = await open("/tasks");
    await page.getByText("The server cannot be reached").waitFor();
    // The stream is still open: a network that drops everything does not close it.
    await page.getByRole("button", { name: "Offline" }).waitFor();
    isCut = false;
    // Long before the next look that a healthy server gets.
    await page.getByText("This node is stopping").waitFor({ timeout: 10_000 });
    expect(await page.getByText("The server cannot be reached").count()).toBe(0);
    await page.getByRole("button", { name: "Live" }).waitFor();
    await page.getByText("The database cannot be written to: disk full.").waitFor();
    await page.getByText("The scheduler is disabled").waitFor();
    await page.getByText("The configuration on disk is not in force").waitFor();
    await expectAccessible(page);
  });
}

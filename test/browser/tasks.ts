import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import {
  breakRequests,
  expectAccessible,
  expectAccessibleEverywhere,
  newPerson,
  newTenant,
  type TestTenant,
  type World,
} from "./world.ts";

function rowsOf(page: Page) {
  return page.getByRole("table", { name: "Tasks" }).locator(".lrow");
}

async function submitSome({ rota }: TestTenant): Promise<void> {
  await rota.tasks.submit({ agentId: "held", message: "Compare prices of 12 laptop suppliers" });
  await rota.tasks.submit({ agentId: "counted", instruction: "Nightly competitor report" });
  await rota.tasks.submit({ message: "Remind Ravi of the contract renewal", runAt: "2100-01-01T00:00:00Z" });
  const { taskId } = await rota.tasks.submit({ agentId: "broken", message: "Collect pricing pages" });
  await rota.tasks.wait(taskId);
}

export function tasksTests(world: () => World): void {
  test("an empty list says what to do, and offers it to roles that may", async () => {
    const tenant = await newTenant(world());
    const viewer = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await viewer.open("/tasks");
    await page.getByText("No tasks yet").waitFor();
    expect(await page.getByRole("button", { name: /New task|Submit the first/ }).count()).toBe(0);
    await expectAccessible(page);
    const operator = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const other = await operator.open("/tasks");
    await other.getByRole("button", { name: "Submit the first one" }).waitFor();
  });

  test("it is accessible in light and in dark, wide and on a phone", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks?lane=main&priority=normal");
    await page.getByText("the other side hung up").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "tasks");
  });

  test("a viewer can change nothing, an agent sees its own, an operator may do all", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const refused: string[] = [];
    const open = async (role: "viewer" | "agent" | "operator") => {
      const { key } = await tenant.key(role, role === "agent" ? "held" : undefined);
      const person = await newPerson(world(), { key });
      person.context.on("response", (response) => {
        if (response.status() === 403) refused.push(response.url());
      });
      const page = await person.open("/tasks");
      await page.getByText("Compare prices of 12 laptop suppliers").waitFor();
      return page;
    };
    const viewer = await open("viewer");
    await expect.poll(() => rowsOf(viewer).count()).toBe(4);
    expect(await viewer.getByRole("checkbox").count()).toBe(0);
    expect(await viewer.getByRole("button", { name: "New task" }).count()).toBe(0);
    const agent = await open("agent");
    expect(await rowsOf(agent).count()).toBe(1);
    expect(await agent.getByRole("checkbox").count()).toBe(0);
    expect(await agent.getByRole("button", { name: "New task" }).count()).toBe(1);
    const operator = await open("operator");
    expect(await operator.getByRole("checkbox").count()).toBe(5);
    expect(await operator.getByRole("button", { name: "New task" }).count()).toBe(1);
    expect(refused).toEqual([]);
  });

  test("an error is said with a way to try again, which works", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const repair = await breakRequests(context, "**/v1/tasks?*");
    const page = await open("/tasks");
    await page.getByText("The tasks could not be read").waitFor();
    await page.getByText("The database is gone.").waitFor();
    await expectAccessible(page);
    repair();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Compare prices of 12 laptop suppliers").waitFor();
  });

  test("filters are in the address, and survive a reload, back, and going away and coming back", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/tasks");
    const search = () => new URL(page.url()).search;
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    await page.getByRole("link", { name: "Failed" }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(search()).toBe("?state=failed");
    await page.getByLabel("Add a filter").selectOption("agentId");
    await page.getByLabel("Agent", { exact: true }).fill("broken");
    await expect.poll(search).toBe("?state=failed&agentId=broken");
    await page.reload();
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(await page.getByLabel("Agent", { exact: true }).inputValue()).toBe("broken");
    await page.getByText("Collect pricing pages").click();
    await page.getByRole("heading", { name: "Collect pricing pages" }).waitFor();
    await page.locator(".crumb").getByRole("link", { name: "Tasks" }).click();
    await expect.poll(search).toBe("?state=failed&agentId=broken");
    await page.goBack();
    await page.getByRole("heading", { name: "Collect pricing pages" }).waitFor();
    await page.getByRole("navigation", { name: "Work" }).getByRole("link", { name: "Tasks" }).click();
    await expect.poll(search).toBe("?state=failed&agentId=broken");
    await page.goBack();
    await page.goBack();
    await expect.poll(search).toBe("?state=failed&agentId=broken");
    await page.goBack();
    await expect.poll(search).toBe("?state=failed");
    await page.goBack();
    await expect.poll(search).toBe("");
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    await page.getByLabel("Add a filter").selectOption("agentId");
    await page.getByLabel("Agent", { exact: true }).fill("nobody");
    await page.getByText("No task matches").waitFor();
    await page.getByRole("button", { name: "Remove all filters" }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(4);
  });

  test("a search, a time and an order are in the address, too, and rows keep moving", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const { tasks } = await tenant.rota.tasks.list({ order: "oldest" });
    const [first] = tasks;
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    const search = () => new URL(page.url()).search;
    const titles = () => rowsOf(page).locator(".c-title").allInnerTexts();
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    await page.getByLabel("Order").selectOption("Oldest");
    await expect.poll(async () => (await titles())[0]).toBe("Compare prices of 12 laptop suppliers");
    expect(search()).toBe("?order=oldest");
    await page.getByLabel("Order").selectOption("Ended last");
    await expect.poll(titles).toEqual(["Collect pricing pages", "Nightly competitor report"]);
    await page.getByRole("columnheader", { name: "Ended" }).waitFor();
    // What runs has not ended.
    await page.getByRole("link", { name: "Running" }).click();
    await expect.poll(titles).toEqual(["Compare prices of 12 laptop suppliers"]);
    await page.getByRole("link", { name: "All" }).click();
    await page.getByLabel("Add a filter").selectOption("from");
    await page.getByLabel("Created", { exact: true }).selectOption("last 15 min");
    await expect.poll(search).toBe("?from=15m");
    await page.keyboard.press("Escape");
    await page.locator("#content").focus();
    await page.keyboard.press("/");
    await page.keyboard.type(first?.taskId ?? "");
    await expect.poll(titles).toEqual(["Compare prices of 12 laptop suppliers"]);
    expect(search()).toBe(`?from=15m&q=${first?.taskId}`);
    await page.reload();
    await expect.poll(titles).toEqual(["Compare prices of 12 laptop suppliers"]);
    expect(await page.getByLabel("Search tasks").inputValue()).toBe(first?.taskId);
    await page.getByRole("button", { name: "Live" }).waitFor();
    await tenant.rota.tasks.cancel(first?.taskId ?? "");
    await rowsOf(page).getByRole("img", { name: "Cancelled" }).waitFor();
    await page.getByLabel("Add a filter").selectOption("to");
    await page.getByLabel("Before", { exact: true }).fill("2020-01-01T00:00");
    await page.getByText("The tasks could not be read").waitFor();
    await page.getByText("must be later than from").waitFor();
    await page.getByRole("button", { name: "Remove all" }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(4);
  });

  test("those that are selected are cancelled, and then retried", async () => {
    const tenant = await newTenant(world());
    const messages = ["one", "two", "three", "four"];
    for (const message of messages) await tenant.rota.tasks.submit({ agentId: "held", message });
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    await expect.poll(() => rowsOf(page).count()).toBe(4);
    const boxes = page.getByRole("checkbox", { name: /^Select tsk_/ });
    await boxes.nth(0).click();
    // What comes above it moves it down: the range still begins there.
    await tenant.rota.tasks.submit({ agentId: "held", message: "five" });
    await expect.poll(() => rowsOf(page).count()).toBe(5);
    await boxes.nth(3).click({ modifiers: ["Shift"] });
    await page.getByText("3 selected").waitFor();
    await expectAccessible(page);
    await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel 3 tasks" }).click();
    await page.getByText("Cancelled 3 tasks").waitFor();
    await expect
      .poll(async () => (await tenant.rota.tasks.counts()).counts)
      .toEqual({ cancelled: 3, running: 2 });
    await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
    await page.getByRole("toolbar").getByRole("button", { name: "Retry" }).click();
    await page.getByText("2 tasks of those selected cannot be").waitFor();
    await page.getByRole("button", { name: "Retry 3 tasks" }).click();
    await expect.poll(async () => (await tenant.rota.tasks.counts()).counts.running).toBe(5);
  });

  test("all that match are cancelled and deleted, also those that are not loaded", async () => {
    const tenant = await newTenant(world());
    for (let batch = 0; batch < 2; batch++) {
      await tenant.rota.tasks.submitBatch({
        tasks: Array.from({ length: 70 }, (_, n) => ({
          message: `row ${n}`,
          agentId: `later-${batch}`,
          priority: "low" as const,
          runAt: "2100-01-01T00:00:00Z",
        })),
      });
    }
    await tenant.rota.tasks.submit({ agentId: "held", message: "another" });
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks?priority=low&state=queued,delayed,waiting_dependency");
    await page.getByText("row 69").waitFor();
    const boxes = page.getByRole("checkbox", { name: /^Select tsk_/ });
    await boxes.first().click();
    await page.getByRole("button", { name: "Select all that match" }).click();
    // Without one of them, the others that are loaded stay selected.
    await boxes.nth(1).click();
    await page.getByText("99 selected").waitFor();
    expect([await boxes.first().isChecked(), await boxes.nth(1).isChecked()]).toEqual([true, false]);
    // A checkbox has the focus, and takes no letters.
    await page.keyboard.press("c");
    await page.getByRole("dialog", { name: "Cancel tasks" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
    await page.getByText("100 selected").waitFor();
    await page.getByRole("button", { name: "Select all that match" }).click();
    await page.getByText("All 140 that match are selected").waitFor();
    // What waits can be cancelled, and nothing else.
    expect(
      await page
        .getByRole("toolbar")
        .getByRole("button", { name: /Delete|Retry/ })
        .count(),
    ).toBe(0);
    await page.keyboard.press("c");
    const dialog = page.getByRole("dialog", { name: "Cancel tasks" });
    await dialog.getByText("and 135 more").waitFor();
    const confirm = dialog.getByRole("button", { name: "Cancel 140 tasks" });
    // Its text can be read below the pointer, too.
    await confirm.hover();
    await expectAccessible(page);
    await confirm.click();
    await page.getByText("Cancelled 140 tasks").waitFor();
    const counts = async () => (await tenant.rota.tasks.counts()).counts;
    expect(await counts()).toEqual({ cancelled: 140, running: 1 });
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
    await page.getByRole("button", { name: "Select all that match" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete 140 tasks" }).click();
    await page.getByText("No task matches").waitFor();
    expect(await counts()).toEqual({ running: 1 });
  });

  test("what is done with many says how far it is, after another page, a reload and a lost connection, too, and can be aborted", async () => {
    const tenant = await newTenant(world());
    for (const message of ["one", "two"]) await tenant.rota.tasks.submit({ agentId: "held", message });
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const bulk = { bulkId: "blk_1", action: "cancel", filter: null, failed: 0, by: null };
    let state = "running";
    let isCut = false;
    await context.route("**/v1/tasks/bulk", (route) =>
      route.request().postDataJSON().dryRun
        ? route.fallback()
        : route.fulfill({ status: 202, json: { bulkId: "blk_1", matched: 1_204 } }),
    );
    let cuts = 0;
    await context.route("**/v1/bulk/blk_1*", (route) => {
      if (!isCut) return route.fulfill({ json: { ...bulk, matched: 1_204, done: 500, skipped: 1, state } });
      cuts += 1;
      return route.abort();
    });
    await context.route("**/v1/bulk/blk_1/abort", (route) => {
      state = "aborted";
      return route.fulfill({ json: { ...bulk, matched: 1_204, done: 500, skipped: 1, state } });
    });
    const page = await open("/tasks");
    await page.getByRole("checkbox", { name: "Select all that are loaded" }).click();
    await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel 2 tasks" }).click();
    await page.getByText("Cancelling 501 of 1\u202f204 tasks").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Lanes" }).click();
    await page.getByRole("heading", { name: "Lanes", level: 1 }).waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Abort" }).waitFor();
    await page.reload();
    await page.getByText("Cancelling 501 of 1\u202f204 tasks").waitFor();
    isCut = true;
    // The second try of the client, too.
    await expect.poll(() => cuts).toBeGreaterThan(2);
    isCut = false;
    await page.getByRole("button", { name: "Abort" }).click();
    await page.getByText("Cancelled 500 tasks; 1 could not be; aborted").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Abort" }).count()).toBe(0);
  });

  test("filters are saved as a view, columns are hidden, and both are kept", async () => {
    const tenant = await newTenant(world());
    await submitSome(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/tasks?state=failed&agentId=broken");
    await page.getByText("Collect pricing pages").waitFor();
    await page.getByRole("button", { name: "Save view" }).click();
    await page.keyboard.type("Broken things");
    await expectAccessible(page);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByLabel("Lane", { exact: true }).uncheck();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.reload();
    await page.getByRole("link", { name: "Broken things" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("?state=failed&agentId=broken");
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    expect(await page.locator(".tabs [aria-current]").allTextContents()).toEqual(["Broken things"]);
    expect(await page.getByRole("columnheader", { name: "Lane" }).count()).toBe(0);
    // The columns that are left are as wide as the list.
    const [title, made] = [rowsOf(page).locator(".c-title"), rowsOf(page).locator(".c-made")];
    expect((await title.boundingBox())?.width).toBeGreaterThan(200);
    expect((await made.boundingBox())?.x).toBeGreaterThan(1_000);
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByRole("button", { name: "Remove Broken things" }).click();
    await page.keyboard.press("Escape");
    expect(await page.getByRole("link", { name: "Broken things" }).count()).toBe(0);
    // The pointer reaches the time, whose title is exact; a click on it opens the row as one beside it does.
    await rowsOf(page).locator("time").click();
    await page.getByRole("heading", { name: "Collect pricing pages", level: 1 }).waitFor();
  });

  test("loaded tasks are grouped by a key of their metadata and sorted by the time they ran", async () => {
    const tenant = await newTenant(world());
    for (const [message, project] of [
      ["one", "atlas"],
      ["two", "borealis"],
      ["three", "atlas"],
      ["four", undefined],
    ] as const) {
      const { taskId } = await tenant.rota.tasks.submit({
        message,
        ...(project && { metadata: { project } }),
      });
      await tenant.rota.tasks.wait(taskId);
    }
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    await rowsOf(page).getByText("four").waitFor();
    await page.getByLabel("Add a filter").selectOption("Group by");
    const field = page.getByRole("combobox", { name: "Group by" });
    // The keys that tasks have are suggested.
    await expect.poll(() => page.locator("datalist option[value=project]").count()).toBe(1);
    await field.fill("project");
    await field.press("Enter");
    const texts = () =>
      rowsOf(page).evaluateAll((rows) =>
        rows.map((row) => (row.querySelector(".name") ?? row).textContent?.replaceAll(/\s+/g, " ")),
      );
    const grouped = [
      "project atlas 2",
      "three",
      "one",
      "project borealis 1",
      "two",
      "Without project 1",
      "four",
    ];
    // The order of the groups is that of their first rows, which is the newest.
    await expect.poll(texts).toEqual(grouped);
    await expectAccessibleEverywhere(page, "tasks-grouped");
    await page.locator("#content").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByRole("toolbar", { name: "Selected tasks" }).getByText("1 selected").waitFor();
    expect(await page.getByRole("row", { selected: true }).textContent()).toContain("three");
    await page.getByLabel("Order").selectOption("Longest run");
    await page.waitForURL(/sort=run/);
    await page.reload();
    await page.getByRole("columnheader", { name: "Run" }).waitFor();
    expect(await page.getByRole("columnheader", { name: "Run" }).getAttribute("aria-sort")).toBe(
      "descending",
    );
    await expect.poll(async () => (await texts()).toSorted()).toEqual(grouped.toSorted());
  });

  test("a filter that few tasks match is searched further by itself, and then when one wants it", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ message: "the only one" });
    const { tasks } = await tenant.rota.tasks.listRows({});
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    let pages = 0;
    await context.route("**/v1/tasks?*", (route) => {
      pages += 1;
      const found = pages > 25 ? tasks : [];
      const nextCursor = pages > 25 ? null : String(1_000 - pages);
      return route.fulfill({ json: { tasks: found, count: found.length, nextCursor } });
    });
    const page = await open("/tasks?lane=team");
    await page.getByText("No task matches so far.").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Search on" }).click();
    await page.getByRole("link", { name: "the only one" }).waitFor();
    expect(await rowsOf(page).locator("a").getAttribute("href")).toContain(taskId);
    expect(await page.getByRole("button", { name: "Search on" }).count()).toBe(0);
  });

  test("on a phone tasks are selected, too", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submit({ agentId: "held", message: "one" });
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key, width: 360 });
    const page = await open("/tasks");
    await page.getByText("one", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Select" }).click();
    await page.getByRole("checkbox", { name: /^Select tsk_/ }).check();
    await page.getByText("1 selected").waitFor();
    await expectAccessible(page);
    await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
    await expect.poll(async () => (await tenant.rota.tasks.counts()).counts).toEqual({ cancelled: 1 });
  });

  test("a page begins at its top, and going back leads to where one was", async () => {
    const tenant = await newTenant(world());
    for (let batch = 0; batch < 2; batch++) {
      await tenant.rota.tasks.submitBatch({
        tasks: Array.from({ length: 90 }, (_, n) => ({
          message: `row ${batch * 90 + n}`,
          runAt: "2100-01-01T00:00:00Z",
        })),
      });
    }
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const repair = await breakRequests(context, /\/v1\/tasks\?.*cursor=/);
    const page = await open("/tasks");
    await page.getByText("row 179").waitFor();
    await page.evaluate(() => scrollTo({ top: 1_500 }));
    // The list does not seem to end where its next page could not be read.
    await page.getByText("Further tasks could not be read").waitFor();
    repair();
    // Not as a mouse does, which would scroll to it.
    await page.getByRole("button", { name: "Try again" }).dispatchEvent("click");
    const table = page.getByRole("table", { name: "Tasks" });
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("181");
    await page.getByText("row 130", { exact: true }).click();
    await page.getByRole("heading", { name: "row 130" }).waitFor();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(0);
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("content");
    await page.goBack();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(1_500);
  });

  test("one submits, finds and cancels a task by keyboard alone", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submit({ message: "older" });
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/tasks");
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New task" }).waitFor();
    await page.locator("textarea[name=message]:focus").waitFor();
    await expectAccessible(page);
    await page.keyboard.type("typed by hand");
    await page.keyboard.press("Tab");
    await page.locator("input[name=agentId]:focus").waitFor();
    await page.keyboard.type("held");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "typed by hand" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await expect.poll(() => rowsOf(page).count()).toBe(2);
    await page.keyboard.press("j");
    await page.locator(".lrow[data-cursor]", { hasText: "typed by hand" }).waitFor();
    await tenant.rota.tasks.submit({ message: "came meanwhile" });
    await expect.poll(() => rowsOf(page).count()).toBe(3);
    await page.locator(".lrow[data-cursor]", { hasText: "typed by hand" }).waitFor();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    await page.keyboard.press("c");
    await page.getByText("Cancelled 1 task").waitFor();
    const counts = async () => (await tenant.rota.tasks.counts()).counts;
    await expect.poll(counts).toEqual({ done: 2, cancelled: 1 });
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "typed by hand" }).waitFor();
  });

  test("a million rows are no more than a hundred in the page", async () => {
    const { key } = await (await newTenant(world())).key("operator");
    const { context, open } = await newPerson(world(), { key });
    // In the page itself: sending a hundred megabytes through a proxy would take longer than reading them.
    const stub = await context.addInitScript(() => {
      const PAGE = 100_000;
      const ask = window.fetch;
      const createdAt = new Date().toISOString();
      window.fetch = async (input, init) => {
        const url = new URL(String(input), location.href);
        if (url.pathname !== "/v1/tasks") return ask(input, init);
        const from = Number(url.searchParams.get("cursor") ?? 0);
        const row = (n: number) =>
          `{"taskId":"tsk_${n}","agentId":"a","state":"done","title":"row ${n}","attempts":1,"createdAt":"${createdAt}"}`;
        const rows = Array.from({ length: PAGE }, (_, index) => row(from + index));
        const nextCursor = from + PAGE < 1_000_000 ? `"${from + PAGE}"` : null;
        return new Response(`{"tasks":[${rows.join(",")}],"count":${PAGE},"nextCursor":${nextCursor}}`);
      };
    });
    onTestFinished(() => stub.dispose());
    const page = await open("/tasks");
    await page.getByText("row 0", { exact: true }).waitFor();
    expect(await rowsOf(page).count()).toBeLessThanOrEqual(100);
    let most = 0;
    const toTheEnd = async () => {
      await page.evaluate(() => scrollTo({ top: document.documentElement.scrollHeight }));
      most = Math.max(most, await rowsOf(page).count());
      return page.getByText("Only the first 500\u202f000 are shown.").count();
    };
    await expect.poll(toTheEnd, { timeout: 25_000 }).toBe(1);
    await toTheEnd();
    await page.getByText("row 499999").waitFor();
    expect(most).toBeLessThanOrEqual(100);
  });
}

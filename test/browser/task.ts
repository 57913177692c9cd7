import { expect, test } from "vitest";
import { RotaClient } from "../../src/client/index.ts";
import {
  expectAccessible,
  expectAccessibleEverywhere,
  expectNoSidewaysScroll,
  gates,
  goTo,
  keepShot,
  newPerson,
  newTenant,
  type World,
} from "./world.ts";

export function taskTests(world: () => World): void {
  test("one that is not there says so", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const page = await (await newPerson(world(), { key })).open("/tasks/tsk_gone");
    await page.getByText("There is no such task").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "All tasks" }).click();
    await page.getByText("No tasks yet").waitFor();
  });

  test("an error of the server is said, and can be tried again", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ message: "hello" });
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    await context.route(`**/v1/tasks/${taskId}`, (route) => route.abort());
    await context.route(/\/tasks\/events/, (route) => route.abort());
    const page = await open(`/tasks/${taskId}`);
    await page.getByText("The server cannot be reached.").first().waitFor();
    await context.unroute(`**/v1/tasks/${taskId}`);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "hello" }).waitFor();
  });

  test("one that waits says why, with links to what holds it, and moves on by itself", async () => {
    const tenant = await newTenant(world());
    const submit = (message: string, dependsOn?: string[]) =>
      tenant.rota.tasks.submit({ agentId: "held", message, lane: "slow", ...(dependsOn && { dependsOn }) });
    const [first, second] = [await submit("runs first"), await submit("goes next")];
    // Of another agent in another lane.
    const before = await tenant.rota.tasks.submit({ agentId: "gated", message: "before it" });
    const { taskId: third } = await submit("waits", [before.taskId]);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open(`/tasks/${third}`);
    const why = page.getByRole("region", { name: "Why it waits" });
    await why.getByText("It waits for another task").waitFor();
    await why.getByRole("link", { name: "before it" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expect.poll(() => gates.has(before.taskId)).toBe(true);
    // No event reports that the task can start now.
    gates.get(before.taskId)?.();
    await page.locator(".title-meta").getByText("Queued").waitFor();
    await why.getByText("2nd").waitFor();
    await why.getByText(/slots? of the lane/i).waitFor();
    await why.getByRole("link", { name: "goes next" }).waitFor();
    await why.getByText(/Held by|Running in the lane/).waitFor();
    await why.getByRole("link", { name: "runs first" }).waitFor();
    expect(await why.getByRole("link", { name: "slow" }).first().getAttribute("href")).toBe(
      "/ui/tasks?lane=slow",
    );
    await expectAccessible(page);
    await keepShot(page, "task-waiting-1280-light");
    for (const { taskId } of [first, second]) await tenant.rota.tasks.cancel(taskId);
    await page.locator(".title-meta").getByText("Running").waitFor();
    await expect.poll(() => why.count()).toBe(0);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator(".title-meta").getByText("Cancelled").waitFor();
    await page.getByRole("button", { name: /^Retry/ }).waitFor();
  });

  test("one that failed shows its error, its attempts and its graph, accessible in all themes and widths", async () => {
    const tenant = await newTenant(world());
    const batch = await tenant.rota.tasks.submitBatch({
      tasks: [
        { key: "start", message: "Find suppliers" },
        {
          key: "pages",
          agentId: "broken",
          message: "Collect pricing pages of 12 suppliers",
          dependsOn: ["start"],
          retryPolicy: { maxRetries: 1, backoffMs: 100, jitter: 0 },
          metadata: { project: "suppliers", sites: Array.from({ length: 37 }, (_, n) => n) },
          callbackUrl: "http://127.0.0.1:9/hook",
        },
        { key: "reviews", message: "Read reviews", dependsOn: ["start"] },
        { key: "compare", message: "Write comparison", dependsOn: ["pages", "reviews"] },
      ],
    });
    const taskId = batch.taskIds[1] ?? "";
    await tenant.rota.tasks.wait(taskId);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open(`/tasks/${taskId}`);
    await page.locator("#error").getByText("the other side hung up").waitFor();
    for (const name of ["Attempt 1", "Back-off", "Attempt 2"]) {
      await page.locator(".wf-name", { hasText: name }).waitFor();
    }
    await page.getByRole("button", { name: "[ 37 items ]" }).waitFor();
    const graph = page.getByRole("region", { name: "Dependency graph" });
    const start = graph.getByRole("link", { name: /^Done start/ });
    await start.waitFor();
    expect(await page.locator(".dag rect").count()).toBe(3);
    await expectAccessibleEverywhere(page, "task-failed");
    // A phone has no hover.
    await page.locator(".title-meta time").click();
    await page
      .getByRole("status")
      .getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} .*ago$|, now$/)
      .waitFor();
    await page.evaluate(() => Object.assign(window, { isSameDocument: true }));
    await start.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Find suppliers" }).waitFor();
    expect(await page.evaluate(() => "isSameDocument" in window)).toBe(true);
  });

  test("a result and what it cost are shown, and one just like it is submitted", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "counted", payload: { n: 1 } });
    await tenant.rota.tasks.wait(taskId);
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await open(`/tasks/${taskId}`);
    await page.getByRole("region", { name: "Result" }).first().getByText('"visited"').waitFor();
    await page.getByText("7\u202f904").waitFor();
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByText("Copied as curl").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toMatch(
      /^curl -s '.*\/v1\/tasks' -H "authorization: Bearer \$ROTA_KEY".*"payload":\{"n":1\}/,
    );
    await page.getByRole("button", { name: "Submit again" }).click();
    const field = page.getByLabel("Task as JSON");
    await expectAccessible(page);
    await field.fill("{");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("alert").waitFor();
    await field.fill('{"agentId":"counted","payload":{"n":2}}');
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("heading", { name: '{"n":2}' }).waitFor();
    expect((await tenant.rota.tasks.counts()).total).toBe(2);
  });

  test("what was logged is shown by attempt, the newest first asked for, and stays text", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({
      agentId: "broken",
      message: "logged",
      retryPolicy: { maxRetries: 1, backoffMs: 10, jitter: 0 },
    });
    await tenant.rota.tasks.wait(taskId);
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    await context.route(`**/v1/tasks/${taskId}/logs?*`, (route) => {
      const attempt = Number(new URL(route.request().url()).searchParams.get("attempt") ?? 2);
      const lines = Array.from({ length: attempt === 2 ? 250 : 1 }, (_, n) => ({
        n: n + 13,
        at: new Date(Date.UTC(2026, 10, 16, 5, 0, n)).toISOString(),
        level: n === 249 ? "error" : "info",
        text: `attempt ${attempt} line ${n} <img src=x onerror=alert(1)>`,
      }));
      const dropped = attempt === 2 ? 12 : 0;
      return route.fulfill({ json: { taskId, attempt, lines, count: lines.length, dropped, next: null } });
    });
    const page = await open(`/tasks/${taskId}`);
    const log = page.getByRole("list", { name: "Log" });
    await log.getByText("attempt 2 line 249 <img").waitFor();
    await log.getByText("12 older lines of this attempt are no longer kept.").waitFor();
    expect(await log.getByText("attempt 2 line 0 ").count()).toBe(0);
    await log.getByRole("button", { name: "Show all 250 lines" }).click();
    await log.getByText("attempt 2 line 0 ").waitFor();
    await page.getByLabel("Attempt 1").check();
    await log.getByText("attempt 1 line 0").waitFor();
    expect(await log.getByRole("listitem").count()).toBe(1);
    await expectAccessibleEverywhere(page, "task-log");
  });

  test("numbers that JavaScript cannot hold are shown and copied as the server wrote them", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "counted", payload: { n: 1 } });
    const task = await tenant.rota.tasks.wait(taskId);
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const exact = '{"id":9007199254740993,"far":1e400,"near":[0.1000000000000000055511151231257827]}';
    await context.route(`**/v1/tasks/${taskId}`, (route) =>
      route.fulfill({
        contentType: "application/json",
        body: JSON.stringify({ ...task, payload: "HERE" }).replace('"HERE"', exact),
      }),
    );
    const page = await open(`/tasks/${taskId}`);
    const input = page.getByRole("region", { name: "Input" }).last();
    for (const number of ["9007199254740993", "1e400", "0.1000000000000000055511151231257827"]) {
      await input.getByText(number, { exact: true }).waitFor();
    }
    await page.getByRole("button", { name: "Submit again" }).click();
    const field = page.getByLabel("Task as JSON");
    expect(await field.inputValue()).toContain("1e400");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("alert").getByText("9007199254740993").waitFor();
  });

  test("a viewer has no buttons that change anything, and an agent cancels and retries its own", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "held", message: "runs" });
    const openAs = async (role: "viewer" | "agent") => {
      const { key } = await tenant.key(role, role === "agent" ? "held" : undefined);
      const page = await (await newPerson(world(), { key })).open(`/tasks/${taskId}`);
      await page.getByRole("heading", { name: "runs" }).waitFor();
      return page;
    };
    const viewer = await openAs("viewer");
    const buttons = await viewer.locator(".title-acts").getByRole("button").allInnerTexts();
    expect(buttons).toEqual(["Copy as curl"]);
    const agent = await openAs("agent");
    await agent.getByRole("button", { name: "Cancel" }).click();
    await agent.locator(".title-meta").getByText("Cancelled").waitFor();
    await agent.getByRole("button", { name: /^Retry/ }).click();
    await agent.locator(".title-meta").getByText("Running").waitFor();
  });

  test("script in the text of a task stays text, and a very long word stays on the screen", async () => {
    const tenant = await newTenant(world());
    const bad = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
    const { taskId } = await tenant.rota.tasks.submit({
      agentId: "counted",
      payload: { [bad]: bad },
      metadata: { [bad]: bad },
    });
    await tenant.rota.tasks.wait(taskId);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open(`/tasks/${taskId}`);
    await page.getByText("<img src=x onerror=").first().waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    const long = await tenant.rota.tasks.submit({ message: "x".repeat(5_000) });
    await goTo(page, `/ui/tasks/${long.taskId}`);
    await page.getByRole("heading", { name: /^x+/ }).waitFor();
    await expectNoSidewaysScroll(page);
    const key = "k".repeat(100);
    const { batchId } = await tenant.rota.tasks.submitBatch({
      tasks: [
        { key, message: bad },
        { message: "\u202eafter it", dependsOn: [key] },
      ],
    });
    await page.setViewportSize({ width: 360, height: 860 });
    await goTo(page, `/ui/batches/${batchId}`);
    await page.getByText(/^Critical path: k+/).waitFor();
    await expectNoSidewaysScroll(page);
    expect(await page.locator("img").count()).toBe(0);
  });

  test("who made it and the tree that it started are shown, and all of that is cancelled at once", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("operator");
    const client = new RotaClient({ url: world().url, key, name: "gateway/1.4" });
    const { taskId } = await client.tasks.submit({ agentId: "held", message: "Write the report" });
    const root = await client.tasks.get(taskId);
    const within = (id: string, parentTaskId: string) => ({
      ...root,
      taskId: `tsk_${id}`,
      message: `Part ${id}`,
      parentTaskId,
      rootTaskId: taskId,
      depth: 1,
    });
    const tasks = [within("one", taskId), within("deep", "tsk_one"), within("two", taskId)];
    const { context, open } = await newPerson(world(), { key });
    await context.route(/[?&]rootTaskId=/, (route) =>
      route.fulfill({ json: { tasks, count: tasks.length, nextCursor: "more" } }),
    );
    await context.route("**/v1/tasks/tsk_deep", (route) => route.fulfill({ json: tasks[1] }));
    const page = await open(`/tasks/${taskId}`);
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("your key").waitFor();
    await details.getByText("over HTTP").waitFor();
    await details.getByText("gateway/1.4").waitFor();
    const tree = page.getByRole("region", { name: "Tree" });
    await tree.getByText("the first 4 tasks").waitFor();
    const lines = await tree.getByRole("listitem").allInnerTexts();
    expect(lines.map((line) => line.split("\n")[0])).toEqual([
      "Write the report",
      "Part one",
      "Part deep",
      "Part two",
    ]);
    await expectAccessibleEverywhere(page, "task-tree");
    await page.getByRole("button", { name: "Cancel with all it started" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Cancel all" }).click();
    await page.getByText("Cancelled 1 task").waitFor();
    expect((await client.tasks.get(taskId)).state).toBe("cancelled");
    await tree.getByRole("link", { name: "Part deep" }).click();
    await page.getByRole("heading", { name: "Part deep" }).waitFor();
    await details.getByRole("link", { name: "tsk_one" }).waitFor();
    // Nothing was submitted within it.
    expect(await page.getByRole("button", { name: "Cancel with all it started" }).count()).toBe(0);
  });
}

import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  breakRequests,
  expectAccessible,
  expectAccessibleEverywhere,
  keepShot,
  newPerson,
  newTenant,
  type World,
} from "./world.ts";

const MINUTE_MS = 60_000;

/** An hour that begins quietly, and in which more and more fails. */
function series(url: URL) {
  const step = Number(url.searchParams.get("step"));
  const from = url.searchParams.get("from") ?? "";
  const length = (Date.parse(url.searchParams.get("to") ?? "") - Date.parse(from)) / step / 1_000;
  const wave = (n: number) => Math.round(12 + 7 * Math.sin(n / 6) + 3 * Math.sin(n * 2));
  const points = {
    submitted: (n: number) => wave(n) + (n > length * 0.8 ? 6 : 0),
    done: wave,
    failed: (n: number) => (n % 7 === 0 || n > length * 0.8 ? Math.round(n / 10) : 0),
    waitMs: (n: number) =>
      n < 3 ? null : { p50: 2_000 + n * 20, p95: 9_000 + (n > length * 0.8 ? n * 1_500 : 0) },
  };
  return {
    from,
    step,
    series: Object.entries(points).map(([metric, at]) => ({
      key: "all",
      metric,
      points: Array.from({ length }, (_, n) => at(n)),
    })),
  };
}

const WAITING = {
  reasons: [
    { code: "lane_full", lane: "tasks", count: 612 },
    { code: "agent_full", lane: "tasks", agentId: "research", count: 288 },
    { code: "held_back", count: 121 },
    { code: "waiting_for_task", count: 58 },
    { code: "not_before", count: 28 },
    { code: "no_executor", agentId: "pdf-reader", count: 3 },
  ],
  total: 1_110,
};

const LANES = [
  { name: "main", concurrency: 30, total: null, running: 9, waiting: 198, oldestWaitMs: 48_000 },
  { name: "tasks", concurrency: 20, total: 20, running: 20, waiting: 903, oldestWaitMs: 14 * MINUTE_MS },
  { name: "subagent", concurrency: 50, total: null, running: 6, waiting: 94, oldestWaitMs: 120_000 },
  { name: "cron", concurrency: 30, total: null, running: 3, waiting: 9, oldestWaitMs: null },
  { name: "team", concurrency: 100, total: null, running: 0, waiting: 0, oldestWaitMs: null },
].map((lane) => ({ ...lane, source: "built-in" }));

function upcoming(url: URL) {
  const names = ["Inbox triage", "Price watch, 40 shops", "Tidy session notes", "Nightly competitor report"];
  const soon = Math.ceil(Date.now() / MINUTE_MS) * 60;
  // The first is due again and again: it would leave no room for the others.
  const isOneOfEach = url.searchParams.get("per_schedule") === "1";
  return {
    moments: names.map((name, n) => ({
      schedule_id: isOneOfEach ? n + 1 : 1,
      name: isOneOfEach ? name : "Inbox triage",
      agent: "research",
      at: soon + (4 + 67 * n * n) * 60,
      zone: "UTC",
    })),
    truncated: false,
  };
}

/** A server with much to do. Returns which paths were asked for. */
async function stubMuch({ rota }: World, context: BrowserContext): Promise<() => readonly string[]> {
  const asked: string[] = [];
  context.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/v1/")) asked.push(pathname);
  });
  await context.route("**/v1/stats/series?*", (route) =>
    route.fulfill({ json: series(new URL(route.request().url())) }),
  );
  await context.route("**/v1/waiting", (route) => route.fulfill({ json: WAITING }));
  await context.route("**/v1/lanes", (route) => route.fulfill({ json: { lanes: LANES } }));
  await context.route("**/v1/schedules/upcoming?*", (route) =>
    route.fulfill({ json: upcoming(new URL(route.request().url())) }),
  );
  const stats = await rota.stats();
  const agents = {
    crawler: { submitted: 90, completed: 19, failed: 41, cancelled: 0, rejected: 0 },
    research: { submitted: 90, completed: 88, failed: 2, cancelled: 0, rejected: 0 },
  };
  // Messages of sessions wait, too, and are not counted there.
  const queue = { totalQueued: 900, totalInflight: 38, agentCounts: {} };
  const metrics = { ...stats.metrics, tasksSubmitted: 180, agents };
  await context.route("**/v1/scheduler/stats", (route) =>
    route.fulfill({ json: { ...stats, queue, metrics } }),
  );
  return () => asked;
}

function section(page: Page, name: string) {
  return page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
}

export function overviewTests(world: () => World): void {
  test("with nothing in it it says what to paste, and offers a first task to roles that may", async () => {
    const tenant = await newTenant(world());
    const open = async (role: "viewer" | "operator") =>
      (await newPerson(world(), { key: (await tenant.key(role)).key })).open("/");
    const viewer = await open("viewer");
    await viewer.getByRole("heading", { name: "Nothing has run yet" }).waitFor();
    expect(await viewer.getByRole("button", { name: "Submit a task" }).count()).toBe(0);
    const page = await open("operator");
    const code = page.locator("pre");
    await code.getByText(`curl -s '${world().url}/v1/tasks'`).waitFor();
    await page.getByLabel("Python").check();
    await code.getByText("urllib.request.urlopen").waitFor();
    await expectAccessibleEverywhere(page, "overview-first");
    await page.getByRole("button", { name: "Submit a task" }).click();
    await page.getByRole("dialog", { name: "New task" }).waitFor();
    await page.keyboard.press("Escape");
    expect(await viewer.getByRole("button", { name: "Run a sample" }).count()).toBe(0);
    await tenant.rota.tasks.submit({ message: "the first" });
    await page.getByRole("heading", { name: "Why work waits" }).waitFor();
    await expect.poll(() => code.count()).toBe(0);
  });

  test("a sample shows a bit of everything, and is removed with one click", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/");
    for (const [what, path] of [
      ["Batch", "/v1/tasks/batch"],
      ["Session", "/v1/sessions/chat:anna/messages"],
      ["Schedule", "/v1/schedules"],
    ] as const) {
      await page.getByLabel(what, { exact: true }).check();
      await page.locator("pre").getByText(`curl -s '${world().url}${path}'`).waitFor();
    }
    await page.getByRole("button", { name: "Run a sample" }).click();
    await page.getByText("are a sample").waitFor();
    await page.getByText("Sample: morning greeting").waitFor();
    await expectAccessibleEverywhere(page, "overview-sample");
    const { rota } = tenant;
    await expect.poll(async () => (await rota.tasks.counts()).counts).toEqual({ done: 8, delayed: 1 });
    expect(
      (await rota.tasks.list({ limit: 50 })).tasks.filter(({ metadata }) => metadata?.["sample"]),
    ).toHaveLength(8);
    expect((await rota.sessions.list()).sessions.map(({ key }) => key)).toEqual(["sample:hello"]);
    await page.getByRole("button", { name: "Remove the sample" }).click();
    await page.getByText("The sample is removed").waitFor();
    await expect.poll(() => page.getByText("are a sample").count()).toBe(0);
    expect((await rota.tasks.counts()).total).toBe(0);
    expect((await rota.sessions.list()).sessions).toEqual([]);
    expect((await rota.schedules.list()).schedules).toEqual([]);
    expect((await rota.agents.list()).agents.map(({ id }) => id)).not.toContain("rota-sample");
  });

  test("with much it is accessible, and asks the server for five things", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const asked = await stubMuch(world(), context);
    let healthReads = 0;
    context.on("request", (request) => {
      if (request.url().endsWith("/health")) healthReads += 1;
    });
    const page = await open("/");
    await page.getByText("Lane tasks is full").waitFor();
    await page.getByText("1\u202f110 tasks, by first reason").waitFor();
    await page.getByRole("link", { name: /^Waiting 1.110/ }).waitFor();
    await page.getByRole("link", { name: /Agent crawler fails 41 of 60 tasks/ }).waitFor();
    await page.getByText("Nightly competitor report").waitFor();
    expect(await page.getByText("Inbox triage").count()).toBe(1);
    await page.getByRole("meter", { name: "20 of 20 slots in use" }).waitFor();
    await page.getByRole("img", { name: /^Tasks in the last hour: .* failed\.$/ }).waitFor();
    const reads = asked().filter((path) => path !== "/v1/me" && !path.endsWith("/events"));
    expect(new Set(reads)).toEqual(
      new Set([
        "/v1/scheduler/stats",
        "/v1/waiting",
        "/v1/lanes",
        "/v1/schedules/upcoming",
        "/v1/stats/series",
      ]),
    );
    await page.getByRole("button", { name: "Live" }).waitFor();
    expect(healthReads).toBe(1);
    await expectAccessibleEverywhere(page, "overview");
  });

  test("everything leads to the tasks that it counts", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    await stubMuch(world(), context);
    const page = await open("/?range=24h");
    await page.getByText("Lane tasks is full").waitFor();
    const hrefs = await page
      .locator("main a")
      .evaluateAll((links) =>
        links.map((link) =>
          decodeURIComponent(
            new URL((link as HTMLAnchorElement).href).pathname +
              new URL((link as HTMLAnchorElement).href).search,
          ),
        ),
      );
    for (const href of [
      "/ui/tasks?state=running,assigned",
      "/ui/tasks?state=queued,delayed,waiting_dependency&order=oldest",
      "/ui/tasks?state=failed&from=24h&order=completed",
      "/ui/tasks?state=queued&lane=tasks",
      "/ui/tasks?state=queued&lane=tasks&agentId=research",
      "/ui/tasks?state=waiting_dependency",
      "/ui/tasks?state=failed&agentId=crawler&order=completed",
      "/ui/tasks?state=queued&agentId=pdf-reader",
      "/ui/tasks?lane=subagent",
      "/ui/schedules/1",
    ]) {
      expect(hrefs).toContain(href);
    }
    await page.getByText("Agent crawler fails").click();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await page.goBack();
    await page.getByText("Lane tasks is full").waitFor();
    expect(new URL(page.url()).search).toBe("?range=24h");
  });

  test("how long tasks have waited in a lane is news for the default tenant alone: it may be the tasks of another", async () => {
    const oldest = /the oldest waits 14.min/;
    const open = async (key: string) => {
      const person = await newPerson(world(), { key });
      await stubMuch(world(), person.context);
      const page = await person.open("/");
      await page.getByText("Agent crawler fails").waitFor();
      await page.getByText("Lane tasks is full").waitFor();
      return page;
    };
    const page = await open((await world().rota.keys.create({ role: "viewer", name: "of the default" })).key);
    await page.getByRole("link", { name: oldest }).waitFor();
    await page.getByRole("link", { name: "Oldest: 14 min" }).waitFor();
    expect(await page.getByText("of all tenants").count()).toBe(0);
    const other = await open((await (await newTenant(world())).key("viewer")).key);
    await other.getByText("of all tenants").waitFor();
    expect(await other.getByText(oldest).count()).toBe(0);
    expect(await other.getByText("Oldest:").count()).toBe(0);
  });

  test("the charts show what happened when, to a pointer and to the arrow keys", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    await stubMuch(world(), context);
    const page = await open("/");
    const chart = page.getByRole("slider", { name: /^Look along: Tasks in the last hour/ });
    await chart.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await expect
      .poll(() => chart.getAttribute("aria-valuetext"))
      .toMatch(/^\d\d:\d\d – \d\d:\d\d: Submitted \d+, Done \d+/);
    expect(await page.locator(".tip").count()).toBe(2);
    await expectAccessible(page);
    await keepShot(page, "overview-tip");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".tip").count()).toBe(0);
    await chart.hover();
    await page.locator(".tip", { hasText: "Submitted" }).waitFor();
    await page.getByLabel("7 d").check();
    await page.getByRole("img", { name: /^Tasks in the last 7 days/ }).waitFor();
    expect(new URL(page.url()).search).toBe("?range=7d");
  });

  test("what runs and waits moves by itself", async () => {
    const tenant = await newTenant(world());
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "held", message: "one" });
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/");
    await page.getByRole("link", { name: /^Running 1/ }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await tenant.rota.tasks.submit({ message: "later", runAt: "2100-01-01T00:00:00Z" });
    await page.getByRole("link", { name: /^Waiting 1/ }).waitFor();
    await page.getByText("Why the oldest waits").click();
    await page.getByText("All that wait are not due yet").waitFor();
    const shared = { agentId: "held", concurrencyKey: "one at a time" };
    await tenant.rota.tasks.submit({ ...shared, message: "has the key" });
    await tenant.rota.tasks.submit({ ...shared, message: "wants it" });
    await page.getByText(/wants it, created .* ago: Its concurrency key is taken\./).waitFor();
    await page.getByRole("link", { name: "wants it" }).waitFor();
    await tenant.rota.tasks.cancel(taskId);
    await page.getByRole("link", { name: /^Running 1/ }).waitFor();
  });

  test("an error is said where it is, with a way to try again, and an agent does not come here", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submit({ message: "one" });
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    await stubMuch(world(), context);
    const repair = await breakRequests(context, "**/v1/waiting");
    const page = await open("/");
    await page.getByText("Why work waits could not be read").waitFor();
    await section(page, "Lanes").getByText("full, 20 of 20").waitFor();
    await expectAccessible(page);
    repair();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Lane tasks is full").waitFor();
    await breakRequests(context, "**/v1/scheduler/stats");
    await page.reload();
    await page.getByText("The overview could not be read").waitFor();
    const { key } = await tenant.key("agent", "index");
    const agent = await (await newPerson(world(), { key })).open("/");
    await agent.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    expect(await agent.getByRole("link", { name: "Overview" }).count()).toBe(0);
  });
}

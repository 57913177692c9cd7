import type { Page } from "playwright-core";
import { expect, test } from "vitest";
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
  return page.getByRole("table", { name: "Schedules" }).locator(".lrow");
}

async function runToEnd({ rota }: TestTenant, id: number, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await rota.schedules.run(id);
    await expect
      .poll(async () => (await rota.schedules.runs(id)).runs.every(({ status }) => status !== "running"))
      .toBe(true);
  }
}

/** One that goes well, one that fails, one that is paused, one that is due once. */
async function createSome(tenant: TestTenant) {
  const { schedules } = tenant.rota;
  const create = async (input: Parameters<typeof schedules.create>[0]) =>
    (await schedules.create(input)).scheduled_task.id;
  const briefing = await create({
    schedule: "every weekday at 06:00",
    tz: "America/New_York",
    message: "Calendar, mail and news in 10 lines",
    name: "Morning briefing",
  });
  const check = await create({
    schedule: "every Tue and Sat at 20:30",
    tz: "UTC",
    agent: "broken",
    message: "Pricing pages of 12 suppliers",
    name: "Supplier check",
    retry: { max_retries: 0 },
  });
  await create({
    schedule: "every Mon at 05:00",
    message: "500 pages, desktop and phone",
    name: "Screenshot landing pages",
    enabled: false,
  });
  await create({ schedule: "on 2100-12-01 at 09:00", message: "Ask for the signed contract" });
  await runToEnd(tenant, briefing, 2);
  await runToEnd(tenant, check);
  return { briefing, check };
}

export function schedulesTests(world: () => World): void {
  const openAs = async (tenant: TestTenant, role: "viewer" | "agent" | "operator", path: string) => {
    const { key } = await tenant.key(role, role === "agent" ? "broken" : undefined);
    return (await newPerson(world(), { key })).open(path);
  };

  test("with nothing in it it says what to do, and offers it to roles that may", async () => {
    const tenant = await newTenant(world());
    const viewer = await openAs(tenant, "viewer", "/schedules");
    await viewer.getByText("No schedules yet").waitFor();
    expect(await viewer.getByRole("button", { name: /New schedule|Create the first/ }).count()).toBe(0);
    await expectAccessible(viewer);
    await viewer.getByRole("link", { name: "Week" }).click();
    await viewer.getByText("Nothing is due").waitFor();
    await expectAccessible(viewer);
    const operator = await openAs(tenant, "operator", "/schedules?status=paused");
    await operator.getByText("No schedule matches").waitFor();
    await operator.getByRole("button", { name: "Remove all filters" }).click();
    await operator.getByRole("button", { name: "Create the first one" }).waitFor();
  });

  test("each says when it is due, in its zone and yours, and how its runs went", async () => {
    const tenant = await newTenant(world());
    await createSome(tenant);
    const page = await openAs(tenant, "operator", "/schedules");
    await rowsOf(page).nth(3).waitFor();
    const row = (name: string) => rowsOf(page).filter({ hasText: name });
    await row("Supplier check").getByText("the other side hung up").waitFor();
    await row("Supplier check").getByRole("img", { name: "1 run: 1 failed" }).waitFor();
    await row("Morning briefing").getByRole("img", { name: "2 runs: 2 done" }).waitFor();
    await row("Morning briefing").getByText("06:00 New York").waitFor();
    await row("Screenshot landing pages").getByRole("img", { name: "Paused" }).waitFor();
    await row("Ask for the signed contract").getByText("Not run yet").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "schedules");
    await page.getByLabel("Times in").selectOption("utc");
    await row("Morning briefing")
      .getByText(/1[01]:00$/)
      .waitFor();
    await page.getByLabel("Status").selectOption("paused");
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    await page.reload();
    await page.getByRole("link", { name: "Screenshot landing pages" }).waitFor();
    expect(await rowsOf(page).count()).toBe(1);
    expect(new URL(page.url()).search).toBe("?times=utc&status=paused");
  });

  test("the week shows what ran and what is due, day by day, and one line for what is due often", async () => {
    const tenant = await newTenant(world());
    await createSome(tenant);
    await tenant.rota.schedules.create({ schedule: "every minute", message: "Look", name: "Look for mail" });
    const page = await openAs(tenant, "viewer", "/schedules?status=active");
    await page.getByRole("link", { name: "Week" }).click();
    // The filters of the list are there again when the user goes back to it.
    await expect.poll(() => new URL(page.url()).search).toBe("?status=active&view=week");
    const week = page.getByRole("region", { name: "Week" });
    await week
      .getByRole("link", { name: /^Failed .* Supplier check/ })
      .first()
      .waitFor();
    await week
      .getByRole("link", { name: /^Due 06:00 Morning briefing/ })
      .first()
      .waitFor();
    await week.getByRole("link", { name: "Look for mail, every minute" }).waitFor();
    expect(await week.getByRole("link", { name: /Look for mail/ }).count()).toBe(1);
    expect(await week.getByRole("link", { name: /Screenshot/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "schedules-week");
    await page.getByLabel("Times in").selectOption("utc");
    await week
      .getByRole("link", { name: /^Due 1[01]:00 Morning briefing/ })
      .first()
      .waitFor();
    const shown = () => page.getByRole("main").locator("b").first().textContent();
    const now = await shown();
    await page.getByRole("button", { name: "Week after" }).click();
    await expect.poll(shown).not.toBe(now);
    await expect.poll(() => week.getByRole("link", { name: /^Failed/ }).count()).toBe(0);
    await page.reload();
    await week
      .getByRole("link", { name: /^Due .* Morning briefing/ })
      .first()
      .waitFor();
    expect(await shown()).not.toBe(now);
    await page.getByRole("button", { name: "Today" }).click();
    await expect.poll(shown).toBe(now);
    await week
      .getByRole("link", { name: /^Failed .* Supplier check/ })
      .first()
      .click();
    await page.waitForURL("**/tasks/tsk_*");
  });

  test("many are read a page at a time, and the bars only of those that are seen", async () => {
    const tenant = await newTenant(world());
    for (let number = 0; number < 205; number += 1) {
      await tenant.rota.schedules.create({ schedule: "every day at 06:00", message: `number ${number}` });
    }
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    let asked = 0;
    context.on("request", (request) => {
      if (request.url().includes("/runs?")) asked += 1;
    });
    const page = await open("/schedules");
    await rowsOf(page).nth(199).waitFor();
    await page.getByRole("img", { name: "no runs yet" }).first().waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await rowsOf(page).nth(204).waitFor();
    expect(asked).toBeLessThan(60);
  });

  test("a viewer looks, an agent sees its own, an operator does all", async () => {
    const tenant = await newTenant(world());
    const { check } = await createSome(tenant);
    const viewer = await openAs(tenant, "viewer", `/schedules/${check}`);
    await viewer.getByRole("heading", { name: "Supplier check" }).waitFor();
    await viewer.getByRole("cell", { name: "the other side hung up" }).waitFor();
    expect(await viewer.getByRole("button", { name: /Run now|Pause|Edit|Delete/ }).count()).toBe(0);
    const agent = await openAs(tenant, "agent", "/schedules");
    await agent.getByRole("link", { name: "Supplier check" }).waitFor();
    expect(await rowsOf(agent).count()).toBe(1);
    expect(await agent.getByRole("button", { name: "New schedule" }).count()).toBe(0);
    expect(await agent.getByRole("link", { name: "Week" }).count()).toBe(0);
    const operator = await openAs(tenant, "operator", `/schedules/${check}`);
    for (const name of ["Run now", "Pause", "Edit", "Delete"]) {
      await operator.getByRole("button", { name }).waitFor();
    }
  });

  test("one is made by keyboard alone, with its next times and clock changes as they are written", async () => {
    const tenant = await newTenant(world());
    const page = await openAs(tenant, "operator", "/schedules");
    await page.getByText("No schedules yet").waitFor();
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New schedule" }).waitFor();
    await page.keyboard.type("evry day");
    await page.getByRole("dialog").getByRole("alert").waitFor();
    await page.getByText("Accepted forms").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Control+a");
    await page.keyboard.type("every day at 2:30");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("Europe/Berlin");
    await page.getByText("every day at 02:30", { exact: true }).waitFor();
    await page.getByText("Next 5").waitFor();
    expect(await page.locator(".nexts").first().getByRole("listitem").count()).toBe(5);
    await page.getByText("At the next clock change").waitFor();
    await page.getByText(/In Europe\/Berlin the clock (skips|repeats|goes)/).waitFor();
    await page.getByLabel("Message", { exact: true }).last().focus();
    await page.keyboard.type("Read 30 sites, write the report");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Nightly report");
    await expectAccessibleEverywhere(page, "schedule-new");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("heading", { name: "Nightly report" }).waitFor();
    const [made] = (await tenant.rota.schedules.list()).schedules;
    expect(made).toMatchObject({
      name: "Nightly report",
      schedule_phrase: "every day at 2:30",
      tz: "Europe/Berlin",
      message: "Read 30 sites, write the report",
      status: "active",
    });
  });

  test("what is wrong with one is said at the field that it is about", async () => {
    const tenant = await newTenant(world());
    const page = await openAs(tenant, "operator", "/schedules");
    await page.getByRole("button", { name: "New schedule" }).click();
    await page.getByLabel("When", { exact: true }).fill("every day at 09:00");
    await page.getByRole("textbox", { name: "Message" }).fill("Sum up the news");
    const agent = page.locator("[name=agent]");
    await agent.fill("reserch");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.locator("[name=agent][aria-invalid=true]:focus").waitFor();
    const faultId = (await agent.getAttribute("aria-describedby")) ?? "";
    expect(await page.locator(`[id="${faultId}"]`).textContent()).toContain('"reserch" not found');
    await page.getByLabel("payload (JSON)").check();
    await page.locator("[name=payload]").fill('{"id": 9007199254740993}');
    await agent.fill("");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.locator("[name=payload][aria-invalid=true]:focus").waitFor();
    await page.getByRole("alert").getByText("9007199254740993").waitFor();
    await expectAccessible(page);
    expect((await tenant.rota.schedules.list()).schedules).toEqual([]);
  });

  test("one is run, paused, resumed, changed and deleted on its page", async () => {
    const tenant = await newTenant(world());
    const { briefing } = await createSome(tenant);
    const before = await tenant.rota.schedules.get(briefing);
    const page = await openAs(tenant, "operator", `/schedules/${briefing}`);
    const runs = page.getByRole("region", { name: "All runs" }).getByRole("row");
    await runs.nth(2).waitFor();
    await page.getByText("Times in America/New_York").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "schedule");
    await page.getByRole("button", { name: "Run now" }).click();
    await runs.nth(3).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Not while it is paused").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Times in America/New_York").waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Name").fill("Evening briefing");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Evening briefing" }).waitFor();
    expect((await tenant.rota.schedules.get(briefing)).next_fire_at).toBe(before.next_fire_at);
    await page.getByLabel("Status").selectOption("missed");
    await page.getByText("No such run.").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete this schedule" }).click();
    await rowsOf(page).nth(2).waitFor();
    expect(await rowsOf(page).filter({ hasText: "briefing" }).count()).toBe(0);
    await page.goto(`${world().url}/ui/schedules/${briefing}`);
    await page.getByText("There is no such schedule").waitFor();
  });

  test("its page lists the times at which it will be due, whatever they are counted from", async () => {
    const tenant = await newTenant(world());
    const { key } = await tenant.key("viewer");
    const page = await (await newPerson(world(), { key })).newTab();
    for (const schedule of ["every 2 weeks on Mon at 09:00", "every 3 days at 07:00", "every 90 minutes"]) {
      const { scheduled_task } = await tenant.rota.schedules.create({ schedule, message: "Look" });
      const to = new Date((scheduled_task.next_fire_at + 60 * 86_400) * 1_000);
      const { moments } = await tenant.rota.schedules.upcoming({ to, per_schedule: 5 });
      const due = moments.filter(({ schedule_id }) => schedule_id === scheduled_task.id);
      await page.goto(`${world().url}/ui/schedules/${scheduled_task.id}`);
      const times = page.locator(".nexts time");
      await times.nth(4).waitFor();
      const shown = await times.evaluateAll((all) => all.map((time) => (time as HTMLTimeElement).dateTime));
      expect(shown.map((text) => Date.parse(text) / 1_000)).toEqual(due.map(({ at }) => at));
    }
  });

  test("an error is said with a way to try again, and what a schedule says stays text", async () => {
    const tenant = await newTenant(world());
    const message = '<img src=x onerror="alert(1)">';
    await tenant.rota.schedules.create({ schedule: "every day at 06:00", message });
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const repair = await breakRequests(context, "**/v1/schedules");
    const page = await open("/schedules");
    await page.getByText("The schedules could not be read").waitFor();
    await expectAccessible(page);
    repair();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText(message).click();
    await page.getByRole("heading", { name: message }).waitFor();
  });
}

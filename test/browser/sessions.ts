import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  breakRequests,
  expectAccessible,
  expectAccessibleEverywhere,
  goTo,
  newPerson,
  newTenant,
  type TestTenant,
  type World,
} from "./world.ts";

const ANNA = "chat:anna & co";
const ADDRESS = `/session?${new URLSearchParams({ key: ANNA })}`;

/** One message that is done, one that runs, and two behind it. */
async function talk({ rota }: TestTenant): Promise<void> {
  const { sessions } = rota;
  await sessions.update(ANNA, { debounceMs: 0 });
  await sessions.ask(ANNA, { agentId: "index", message: "When do I get the money back?" });
  await sessions.ask(ANNA, { agentId: "counted", message: "How many pages were there?" });
  await sessions.ask(ANNA, { agentId: "broken", message: "Ask the other side, too." });
  await sessions.update(ANNA, { tokens: 118_400, contextWindow: 200_000 });
  await sessions.send(ANNA, { agentId: "held", message: "Yes please, and send it to my work address." });
  await sessions.send(ANNA, { agentId: "held", message: "Is the warranty still valid?" });
  await sessions.send(ANNA, { agentId: "held", message: "Never mind the last one" });
}

function turnsOf(page: Page) {
  return page.getByRole("log", { name: "Messages" }).locator(".turn");
}

export function sessionsTests(world: () => World): void {
  test("one begins a session and gets an answer by keyboard alone", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/sessions");
    await page.getByText("No sessions yet").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New session" }).waitFor();
    await page.keyboard.type("chat:anna");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing has been said yet").waitFor();
    const message = page.getByLabel("Message", { exact: true });
    for (
      let step = 0;
      step < 30 && !(await message.evaluate((it) => it === document.activeElement));
      step++
    ) {
      await page.keyboard.press("Tab");
    }
    await page.keyboard.type("<img src=x onerror=alert(1)>");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second line");
    await page.keyboard.press("Enter");
    await turnsOf(page).locator(".ans", { hasText: "<img src=x onerror=alert(1)>\nsecond line" }).waitFor();
    await turnsOf(page).getByRole("img", { name: "Done" }).waitFor();
    expect(await message.inputValue()).toBe("");
    await message.blur();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("table", { name: "Sessions" }).getByRole("link", { name: "chat:anna" }).waitFor();
    await page.keyboard.press("j");
    await page.locator(".lrow[data-cursor]").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "chat:anna", level: 1 }).waitFor();
  });

  test("list and transcript are accessible in light and in dark, wide and on a phone", async () => {
    const tenant = await newTenant(world());
    await talk(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open("/sessions");
    await page.getByRole("link", { name: ANNA }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "sessions");
    await page.getByRole("link", { name: ANNA }).click();
    await page.getByText("Yes please, and send it to my work address.").waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await expectAccessibleEverywhere(page, "session");
    const more = page.getByRole("button", { name: "More" }).first();
    await more.click();
    // The menu is below its button.
    const [button, menu] = [await more.boundingBox(), await page.locator(".menu").boundingBox()];
    expect(menu?.y).toBeGreaterThan(button?.y ?? 0);
    expect((menu?.x ?? 0) + (menu?.width ?? 0)).toBeCloseTo((button?.x ?? 0) + (button?.width ?? 0));
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("dialog", { name: "Settings" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 360, height: 860 });
    await page.getByRole("button", { name: "More" }).first().click();
    await page.getByRole("button", { name: "Details" }).click();
    await page.getByRole("meter", { name: "Context used" }).waitFor();
    await expectAccessible(page);
  });

  test("schedules are hidden until the user asks for them, also where there are very many", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.sessions.update("chat:first", { cap: 5 });
    for (let batch = 0; batch < 3; batch++) {
      await tenant.rota.tasks.submitBatch({
        tasks: Array.from({ length: 90 }, (_, n) => ({
          message: "run",
          sessionKey: `schedule:${batch * 90 + n}`,
          runAt: "2100-01-01T00:00:00Z",
        })),
      });
    }
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/sessions");
    const rows = page.getByRole("table", { name: "Sessions" }).locator(".lrow");
    await page.getByText("270 not shown").waitFor();
    expect(await rows.getByRole("link").allInnerTexts()).toEqual(["chat:first"]);
    await page.getByLabel("Kind").selectOption("schedule");
    const table = page.getByRole("table", { name: "Sessions" });
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("271");
    expect(await rows.count()).toBeLessThan(100);
    await page.reload();
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("201");
    expect(new URL(page.url()).search).toBe("?kind=schedule");
    await page.getByRole("button", { name: "Older sessions" }).click();
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("271");
    expect(await rows.count()).toBeLessThan(100);
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(1);
  });

  test("a message is said, interrupted, stopped and cancelled, and all moves by itself", async () => {
    const tenant = await newTenant(world());
    await talk(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open(ADDRESS);
    const behind = page.getByRole("region", { name: "Waiting" });
    await behind.getByText("2 behind it").waitFor();
    await page.getByText("7\u202f904 in, 1\u202f912 out").waitFor();
    await page.getByText("the other side hung up").waitFor();
    expect(await page.getByRole("meter", { name: "Context used" }).getAttribute("aria-valuenow")).toBe(
      "118400",
    );
    await page.getByRole("button", { name: "Live" }).waitFor();
    await page.getByRole("button", { name: "Cancel message 2" }).click();
    await behind.getByText("1 behind it").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped 1 task").waitFor();
    await turnsOf(page).filter({ hasText: "work address" }).getByText("Stopped.").waitFor();
    await turnsOf(page).filter({ hasText: "warranty" }).getByText("Running").waitFor();
    // What was done is still said, and does not cover it.
    await page.getByText("Interrupt", { exact: true }).click({ timeout: 3_000 });
    await page.getByLabel("Message", { exact: true }).fill("Something else");
    await page.getByRole("button", { name: "Send" }).click();
    await turnsOf(page)
      .filter({ hasText: "warranty" })
      .getByText("Interrupted by a later message.")
      .waitFor();
    await turnsOf(page).filter({ hasText: "Something else" }).getByText("Running").waitFor();
    // Said elsewhere.
    await tenant.rota.sessions.send(ANNA, { message: "from a phone" });
    await behind.getByText("from a phone").waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "Stop all" }).click();
    await page.getByRole("button", { name: "Stop 2 tasks" }).click();
    await page.getByText("Stopped 1 task, cancelled 1 task that waited").waitFor();
    await expect.poll(() => behind.count()).toBe(0);
  });

  test("an answer is shown while it is written, in a session that the palette has found", async () => {
    const tenant = await newTenant(world());
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/sessions");
    await page.getByRole("button", { name: "Live" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type(ANNA);
    await page.getByRole("option", { name: `Session ${ANNA}` }).click();
    await page.getByText("Nothing has been said yet").waitFor();
    await tenant.rota.sessions.send(ANNA, { agentId: "writing", message: "To which address?" });
    await turnsOf(page).locator(".ans", { hasText: "I found two addresses" }).waitFor();
  });

  test("a reset asks for the key, and settings are changed and taken back", async () => {
    const tenant = await newTenant(world());
    await talk(tenant);
    const { open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const page = await open(ADDRESS);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("At once").fill("3");
    await page.getByLabel("Join within, ms").fill("");
    await page.getByLabel("May wait").fill("20000");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("cap", { exact: true }).waitFor();
    await page.getByLabel("May wait").fill("12");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect(await tenant.rota.sessions.get(ANNA)).toMatchObject({
      maxConcurrent: 3,
      debounceMs: 800,
      cap: 12,
    });
    await page.getByText(/of 12$/).waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "Reset" }).click();
    const reset = page.getByRole("dialog").getByRole("button", { name: "Reset session" });
    expect(await reset.isDisabled()).toBe(true);
    await expectAccessible(page);
    await page.keyboard.type(ANNA);
    await reset.click();
    await page.getByText("The session begins anew").waitFor();
    await expect.poll(async () => (await tenant.rota.sessions.get(ANNA)).generation).toBe(1);
    await page.getByText("Ended by a reset of the session.").first().waitFor();
  });

  test("a viewer only reads, and an agent talks for itself", async () => {
    const tenant = await newTenant(world());
    await talk(tenant);
    const open = async (role: "viewer" | "agent") => {
      const { key } = await tenant.key(role, role === "agent" ? "held" : undefined);
      const page = await (await newPerson(world(), { key })).open(ADDRESS);
      await turnsOf(page).getByText("work address").waitFor();
      expect(await page.getByRole("button", { name: /^(Stop|More|Edit)/ }).count()).toBe(0);
      return page;
    };
    const viewer = await open("viewer");
    expect(await viewer.getByLabel("Message", { exact: true }).count()).toBe(0);
    expect(await viewer.getByRole("button", { name: /^Cancel message/ }).count()).toBe(0);
    const agent = await open("agent");
    await agent.getByRole("button", { name: "Cancel message 2" }).click();
    await agent.getByRole("region", { name: "Waiting" }).getByText("1 behind it").waitFor();
    await agent.getByLabel("Message", { exact: true }).fill("from its agent");
    await agent.keyboard.press("Enter");
    await agent.getByRole("region", { name: "Waiting" }).getByText("from its agent").waitFor();
  });

  test("an error is said with a way to try again, and what was typed is kept", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.sessions.update(ANNA, { debounceMs: 0, cap: 1, drop: "new" });
    await tenant.rota.sessions.send(ANNA, { agentId: "held", message: "one" });
    await expect.poll(async () => (await tenant.rota.sessions.get(ANNA)).running).toBe(1);
    await tenant.rota.sessions.send(ANNA, { message: "two" });
    const { context, open } = await newPerson(world(), { key: (await tenant.key("operator")).key });
    const repair = await breakRequests(context, /\/v1\/sessions/);
    const page = await open("/sessions");
    await page.getByText("The sessions could not be read").waitFor();
    await goTo(page, `/ui${ADDRESS}`);
    await page.getByText("The session could not be read").waitFor();
    await expectAccessible(page);
    repair();
    await page.getByRole("button", { name: "Try again" }).click();
    const message = page.getByLabel("Message", { exact: true });
    await message.fill("three");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    expect(await message.inputValue()).toBe("three");
  });

  test("a long talk is shown from its end, and what was said before when asked for", async () => {
    const tenant = await newTenant(world());
    await tenant.rota.tasks.submitBatch({
      tasks: Array.from({ length: 80 }, (_, n) => ({ message: `said ${n}`, sessionKey: ANNA })),
    });
    await expect.poll(async () => (await tenant.rota.tasks.counts()).counts.done).toBe(80);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open(ADDRESS);
    await expect.poll(() => turnsOf(page).count()).toBe(50);
    const transcript = page.getByRole("region", { name: "Transcript" });
    const fromEnd = () => transcript.evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight);
    await expect.poll(fromEnd).toBeLessThan(2);
    await transcript.evaluate((it) => it.scrollTo({ top: 0 }));
    await page.getByRole("button", { name: "Earlier messages" }).click();
    await expect.poll(() => turnsOf(page).count()).toBe(80);
    // What one was reading is still there.
    expect(await fromEnd()).toBeGreaterThan(1_000);
    await expect.poll(() => turnsOf(page).filter({ hasText: "said 31" }).first().isVisible()).toBe(true);
    expect(await transcript.evaluate((it) => it.scrollTop)).toBeGreaterThan(500);
  });
}

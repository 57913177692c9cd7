import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  breakRequests,
  expectAccessible,
  expectAccessibleEverywhere,
  newPerson,
  newTenant,
  type World,
} from "./world.ts";

function laneOf(page: Page, name: string) {
  return page.getByRole("region", { name: `Lane ${name}`, exact: true });
}

let lanes = 0;

export function lanesTests(world: () => World): void {
  /** Lanes are of the whole server: each test has its own. */
  const newLane = async (concurrency: number, total: number | null = null) => {
    lanes += 1;
    const { name } = await world().rota.lanes.put(`crawl-${lanes}`, { concurrency, total });
    return name;
  };
  const stored = async (name: string) => {
    const lane = (await world().rota.lanes.list()).lanes.find((each) => each.name === name);
    return lane && [lane.concurrency, lane.total];
  };

  test("they are accessible with much in them, in light, in dark and on a phone", async () => {
    const tenant = await newTenant(world());
    const lane = await newLane(3, 3);
    // The longest name there can be, without a place to break.
    await world().rota.lanes.put("L".repeat(128), { concurrency: 2 });
    for (const message of ["one", "two", "three", "four"]) {
      await tenant.rota.tasks.submit({ agentId: "held", message, lane });
    }
    const { key } = await world().rota.keys.create({ role: "admin", name: "lanes" });
    const { open } = await newPerson(world(), { key });
    const page = await open("/lanes");
    await laneOf(page, lane).getByText("2 waiting").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expectAccessibleEverywhere(page, "lanes");
  });

  test("what runs and waits moves by itself, and leads to the tasks", async () => {
    const tenant = await newTenant(world());
    const lane = await newLane(1, 1);
    const { open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const page = await open("/lanes");
    await laneOf(page, lane).getByText("0 waiting").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await tenant.rota.tasks.submit({ agentId: "held", message: "the one that runs", lane });
    await tenant.rota.tasks.submit({ agentId: "held", message: "the one that waits", lane });
    const shown = laneOf(page, lane);
    await shown.getByText("1 of 1 running").waitFor();
    await shown.getByText("full").waitFor();
    await shown.getByText(/^oldest /).waitFor();
    expect(await shown.getByRole("meter", { name: "1 of 1 slots in use" }).count()).toBe(1);
    await shown.getByRole("link", { name: "1 waiting" }).click();
    await page.getByText("the one that waits").waitFor();
    expect(await page.getByText("the one that runs").count()).toBe(0);
  });

  test("a viewer changes nothing, an operator clears, an agent does not come here", async () => {
    const tenant = await newTenant(world());
    const lane = await newLane(0);
    await tenant.rota.tasks.submit({ message: "waits", lane });
    const open = async (role: "viewer" | "operator" | "agent") => {
      const { key } = await tenant.key(role, role === "agent" ? "held" : undefined);
      return (await newPerson(world(), { key })).open("/lanes");
    };
    const viewer = await open("viewer");
    await laneOf(viewer, lane).getByText("1 waiting").waitFor();
    expect(await viewer.getByRole("button", { name: /Clear|New lane/ }).count()).toBe(0);
    expect(await viewer.getByRole("slider").count()).toBe(0);
    // Another tenant's tasks wait there, too. The operator's page gets no events of them.
    const other = await newTenant(world());
    for (const message of ["one", "two"]) await other.rota.tasks.submit({ message, lane });
    const operator = await open("operator");
    await laneOf(operator, lane).getByText("3 waiting").waitFor();
    await laneOf(operator, lane).getByRole("button", { name: "Clear" }).click();
    await operator.getByRole("button", { name: "Cancel 1 task" }).waitFor();
    await operator.keyboard.press("Escape");
    expect(await operator.getByRole("slider").count()).toBe(0);
    const agent = await open("agent");
    await agent.getByText("Your key may not see this page").waitFor();
  });

  test("an admin sets the concurrency by keyboard, which is taken over once it rests, and takes it back", async () => {
    const lane = await newLane(4, 20);
    const { key } = await world().rota.keys.create({ role: "admin", name: "lanes" });
    const { context, open } = await newPerson(world(), { key });
    let puts = 0;
    context.on("request", (request) => {
      if (request.method() === "PUT") puts += 1;
    });
    const page = await open("/lanes");
    const slider = laneOf(page, lane).getByRole("slider", { name: "Concurrency" });
    await slider.focus();
    for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowRight");
    await page.getByText(`Lane ${lane}: concurrency 4 to 7 on every node`).waitFor();
    expect([await stored(lane), puts]).toEqual([[7, 20], 1]);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(`Lane ${lane}: as before`).waitFor();
    expect(await stored(lane)).toEqual([4, 20]);
    await expect.poll(() => slider.inputValue()).toBe("4");
    const field = laneOf(page, lane).getByRole("textbox", { name: `Concurrency of ${lane}` });
    await field.fill("25");
    await field.press("Enter");
    await page.getByText(`Lane ${lane}: concurrency 4 to 25 on every node`).waitFor();
    const total = laneOf(page, lane).getByRole("textbox", { name: `Total of ${lane}` });
    await total.fill("");
    await total.press("Tab");
    await page.getByText(`Lane ${lane}: total 20 to none`).waitFor();
    expect(await stored(lane)).toEqual([25, null]);
    await field.fill("many");
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    await field.press("Escape");
    expect(await field.inputValue()).toBe("25");
  });

  test("one that the configuration describes says so", async () => {
    const { key } = await world().rota.keys.create({ role: "admin", name: "lanes" });
    const { open } = await newPerson(world(), { key });
    const page = await open("/lanes");
    await laneOf(page, "tasks").getByText("Set under scheduler in the configuration").waitFor();
    expect(await laneOf(page, "tasks").getByRole("slider").count()).toBe(0);
    const field = laneOf(page, "slow").getByRole("textbox", { name: "Concurrency of slow" });
    await field.fill("2");
    await field.press("Enter");
    await laneOf(page, "slow").getByRole("alert").waitFor();
    expect(await laneOf(page, "slow").getByRole("slider").count()).toBe(0);
    expect(await stored("slow")).toEqual([1, null]);
  });

  test("a lane is made, and cleared once its name is typed", async () => {
    const { key } = await world().rota.keys.create({ role: "admin", name: "lanes" });
    const { open } = await newPerson(world(), { key });
    const page = await open("/lanes");
    await laneOf(page, "main").waitFor();
    await page.keyboard.press("n");
    await page.getByRole("textbox", { name: "Name" }).fill("main");
    await page.getByRole("button", { name: "Create lane" }).click();
    await page.getByText("There is a lane main already.").waitFor();
    await expectAccessible(page);
    await page.getByRole("textbox", { name: "Name" }).fill("made-here");
    await page.getByRole("spinbutton", { name: "On each node" }).fill("0");
    await page.getByRole("button", { name: "Create lane" }).click();
    await laneOf(page, "made-here").getByText("starts no tasks on this node").waitFor();
    for (const message of ["one", "two"]) await world().rota.tasks.submit({ message, lane: "made-here" });
    await laneOf(page, "made-here").getByText("2 waiting").waitFor();
    await page.getByRole("button", { name: "Clear made-here" }).click();
    const confirm = page.getByRole("button", { name: "Cancel 2 tasks" });
    expect(await confirm.isDisabled()).toBe(true);
    await page.keyboard.type("made-here");
    await expectAccessible(page);
    await page.keyboard.press("Enter");
    await page.getByText("Lane made-here: cancelled 2 tasks").waitFor();
    await laneOf(page, "made-here").getByText("0 waiting").waitFor();
    expect((await world().rota.tasks.counts()).counts).toEqual({ cancelled: 2 });
  });

  test("an error is said with a way to try again, which works", async () => {
    const tenant = await newTenant(world());
    const { context, open } = await newPerson(world(), { key: (await tenant.key("viewer")).key });
    const repair = await breakRequests(context, "**/v1/lanes");
    const page = await open("/lanes");
    await page.getByText("The lanes could not be read").waitFor();
    await expectAccessible(page);
    repair();
    await page.getByRole("button", { name: "Try again" }).click();
    await laneOf(page, "main").waitFor();
  });
}

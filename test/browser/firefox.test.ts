import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findFirefox } from "./find-browser.ts";
import { newPerson, newTenant, openWorld, SETUP_MS, type World } from "./world.ts";

const path = findFirefox();
let world: World;
beforeAll(async () => {
  if (path !== undefined) world = await openWorld({ firefox: path });
}, SETUP_MS);
afterAll(() => world?.close());

// All else is tested in Chromium. Firefox is no package, so that it is tested where there is one.
describe.skipIf(path === undefined)("in Firefox (FIREFOX_PATH, or firefox-esr on the PATH):", () => {
  test("one signs in, sees the overview, and submits and finds a task", { timeout: 90_000 }, async () => {
    const tenant = await newTenant(world);
    const { key } = await tenant.key("operator");
    const { open } = await newPerson(world);
    const page = await open("/");
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Nothing has run yet" }).waitFor();
    await page.getByRole("button", { name: "Submit a task" }).click();
    await page.getByLabel("message", { exact: false }).last().fill("from Firefox");
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByRole("heading", { name: "from Firefox" }).waitFor();
    await page.getByRole("link", { name: "Tasks" }).first().click();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await page.getByText("from Firefox").waitFor();
    await tenant.rota.tasks.submit({ message: "comes by itself" });
    await page.getByText("comes by itself").waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/tasks");
  });
});

import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { expectAccessibleEverywhere, newPerson, newTenant, type World } from "./world.ts";

export function signInTests(world: () => World): void {
  test("a key is asked for once, a wrong one is refused, and the place is kept", async () => {
    const { key } = await (await newTenant(world())).key("operator");
    const worker = await world().rota.keys.create({ role: "worker", name: "laptop", agents: ["py"] });
    const { context, open } = await newPerson(world());
    const page = await open("/tasks?agentId=research");
    await page.getByLabel("API key").fill("rota_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This key is unknown or was deleted.").waitFor();
    await page.getByLabel("API key").fill(worker.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This key is for a worker, which cannot read anything.").waitFor();
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    expect(new URL(page.url()).search).toBe("?agentId=research");
    expect(page.url()).not.toContain("rota_");
    expect(await context.cookies()).toEqual([]);

    await page.reload();
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    const other = await open("/tasks");
    await other.getByLabel("API key").waitFor();
  });

  test("an error of the server is said in its words, and the typed key is tried again", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { context, open } = await newPerson(world());
    const page = await open("/tasks");
    await page.getByLabel("API key").fill(key);
    await context.route("**/v1/me", (route) =>
      route.fulfill({ status: 403, json: { code: "forbidden", error: "the tenant is disabled" } }),
    );
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "You cannot be signed in now" }).waitFor();
    await page.getByText("The tenant is disabled.").waitFor();
    await context.unroute("**/v1/me");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No tasks yet").waitFor();
  });

  test("a browser that stores nothing signs in, too", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { context, open } = await newPerson(world());
    const blocked = await context.addInitScript(() => {
      for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, {
          get() {
            throw new DOMException("Access is denied for this document.", "SecurityError");
          },
        });
      }
    });
    onTestFinished(() => blocked.dispose());
    const page = await open("/tasks");
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No tasks yet").waitFor();
    await page.getByRole("button", { name: "Switch theme" }).click();
    expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  });

  test("a key that is remembered signs in every tab, and signing out ends it in all of them", async () => {
    const { key } = await (await newTenant(world())).key("viewer");
    const { open } = await newPerson(world());
    const page = await open("/");
    await page.getByLabel("API key").fill(key);
    await page.getByLabel("Remember on this device").check();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    const other = await open("/tasks");
    await other.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
    await other.getByRole("button", { name: "Tenant and key" }).click();
    await other.getByRole("button", { name: "Sign out" }).click();
    await other.getByLabel("API key").waitFor();
    await page.getByLabel("API key").waitFor();
    await page.reload();
    await page.getByLabel("API key").waitFor();
  });

  test("a key that is taken away ends the session, and another one goes on at the same place", async () => {
    const tenant = await newTenant(world());
    const first = await tenant.key("operator");
    const { taskId } = await tenant.rota.tasks.submit({ agentId: "held", message: "stays" });
    const { open } = await newPerson(world(), { key: first.key });
    const page = await open(`/tasks/${taskId}`);
    await page.getByRole("heading", { name: "stays" }).waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    await world().rota.keys.delete(first.id, { tenantId: tenant.id });
    await page.getByText("Your key was deleted or has expired.").waitFor();
    await page.getByLabel("API key").fill((await tenant.key("viewer")).key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "stays" }).waitFor();
  });

  test("without keys there is no sign-in", async () => {
    const rota = await createRota({ storage: "sqlite::memory:" });
    const { dashboard } = world();
    const server = await listen({ rota, dashboard, log: silentLog, host: "127.0.0.1", port: 0 });
    onTestFinished(async () => {
      await server.close();
      await rota.stop();
    });
    const page = await (await newPerson(world(), { url: server.url })).open("/tasks");
    await page.getByText("No tasks yet").waitFor();
    await page.getByRole("button", { name: "default admin · no key needed" }).click();
    expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  });

  test("the first key is an admin's, is shown once, and signs in the tab that has created it", async () => {
    const rota = await createRota({ storage: "sqlite::memory:" });
    const { dashboard } = world();
    const server = await listen({ rota, dashboard, log: silentLog, host: "127.0.0.1", port: 0 });
    onTestFinished(async () => {
      await server.close();
      await rota.stop();
    });
    const { open } = await newPerson(world(), { url: server.url });
    const [page, other] = [await open("/keys"), await open("/tasks")];
    await other.getByText("No tasks yet").waitFor();
    // A tab in the background draws once a second, and a click waits for that.
    await page.bringToFront();
    await page.getByRole("button", { name: "New key" }).click();
    expect(await page.getByLabel("Role").locator("option").allTextContents()).toEqual(["admin"]);
    await page.getByRole("textbox", { name: "Name" }).fill("anna");
    await page.getByRole("button", { name: "Create key" }).click();
    const key = await page.getByRole("textbox", { name: "Your new key" }).inputValue();
    expect((await rota.keys.callerOf(key))?.role).toBe("admin");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("table", { name: "Keys" }).getByText("anna").waitFor();
    await page.getByRole("button", { name: "default admin · anna" }).waitFor();
    await page.getByRole("link", { name: "Lanes" }).click();
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByRole("table", { name: "Keys" }).getByText("anna").waitFor();
    expect(await page.content()).not.toContain(key);
    // Another tab is asked for it.
    await other.bringToFront();
    await other.reload();
    await other.getByLabel("API key").fill(key);
    await other.getByRole("button", { name: "Sign in" }).click();
    await other.getByText("No tasks yet").waitFor();
  });

  test("the page is accessible in light and in dark, wide and on a phone", async () => {
    const { open } = await newPerson(world());
    const page = await open("/");
    await page.getByLabel("API key").fill("rota_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This key is unknown or was deleted.").waitFor();
    await expectAccessibleEverywhere(page, "sign-in");
  });
}

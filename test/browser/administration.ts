import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  expectAccessible,
  expectAccessibleEverywhere,
  expectFault,
  goTo,
  newPerson,
  newTenant,
  type OpenOptions,
  openProxy,
  type World,
} from "./world.ts";

function rowsOf(page: Page, table: string) {
  return page.getByRole("table", { name: table, exact: true }).locator(".lrow");
}

/** What only those see who run the server, or a tenant: nodes, keys, tenants, the audit log, settings and the doctor. */
export function administrationTests(world: () => World): void {
  const newAdmin = async (options: OpenOptions = {}) => {
    const { key } = await world().rota.keys.create({ role: "admin", name: "admin of the test" });
    return newPerson(world(), { key, ...options });
  };

  test("a role sees only the pages that it may, in the navigation, by address and by key", async () => {
    const tenant = await newTenant(world());
    const pagesOf = async (role: "viewer" | "tenant-admin") => {
      const { key } = await tenant.key(role);
      const page = await (await newPerson(world(), { key })).open("/tasks");
      await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
      const names = await page.getByRole("complementary").getByRole("link").allInnerTexts();
      return { page, names };
    };
    const viewer = await pagesOf("viewer");
    expect(viewer.names.slice(5)).toEqual(["Agents", "Workers", "Events", "Webhooks"]);
    await goTo(viewer.page, "/ui/keys");
    await viewer.page.getByText("Your key may not see this page").waitFor();
    await tenant.key("tenant-admin");
    const manager = await pagesOf("tenant-admin");
    expect(manager.names.slice(5)).toEqual(["Agents", "Workers", "Events", "Webhooks", "Keys", "Settings"]);
    await manager.page.keyboard.press("g");
    await manager.page.keyboard.press("k");
    const yours = rowsOf(manager.page, "Keys").filter({ hasText: "tenant-admin key" });
    await expect.poll(() => yours.count()).toBe(2);
    // Of two keys with one name.
    expect(await yours.getByText("yours").count()).toBe(1);
    await manager.page.getByRole("button", { name: "New key" }).click();
    expect(await manager.page.getByLabel("Role").locator("option").allTextContents()).not.toContain("admin");
  });

  test("nodes show their lanes, and the one that responds", async () => {
    const { context, open } = await newAdmin();
    const page = await open("/nodes");
    const own = page.getByRole("region", { name: `Node ${world().rota.node}` });
    await own.getByText("shows you this page").waitFor();
    await own.getByRole("meter").first().waitFor();
    await expectAccessibleEverywhere(page, "nodes");
    await context.route("**/v1/nodes", (route) => route.fulfill({ json: { nodes: [] } }));
    await page.reload();
    await page.getByText("No node runs tasks").waitFor();
    await context.unroute("**/v1/nodes");
    const lost = {
      id: "node-b",
      version: null,
      startedAt: null,
      lastSeenAt: "2026-01-01T00:00:00Z",
      lanes: [],
      state: "lost",
    };
    await context.route("**/v1/nodes", (route) => route.fulfill({ json: { nodes: [lost] } }));
    await page.reload();
    await page.getByRole("region", { name: "Node node-b" }).getByText("Lost", { exact: true }).waitFor();
    await expectAccessible(page);
  });

  test("a key is created by keyboard alone, shown once, and deleted", async () => {
    const tenant = await newTenant(world());
    const { name } = await world().rota.tenants.get(tenant.id);
    const { open } = await newAdmin();
    const page = await open(`/keys?tenantId=${tenant.id}`);
    await page.getByText("This tenant has no keys").waitFor();
    expect(await page.getByLabel("Tenant").inputValue()).toBe(tenant.id);
    await page.keyboard.press("n");
    await page.keyboard.type("gateway");
    await expectAccessible(page);
    await page.keyboard.press("Enter");
    const field = page.getByRole("textbox", { name: "Your new key" });
    const key = await field.inputValue();
    expect(key).toMatch(/^rota_/);
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await rowsOf(page, "Keys").filter({ hasText: "gateway" }).filter({ hasText: "operator" }).waitFor();
    expect(await page.content()).not.toContain(key);
    expect((await world().rota.keys.callerOf(key))?.tenant).toBe(tenant.id);
    await page.keyboard.press("n");
    await page.keyboard.type("laptop");
    await page.getByLabel("Role").selectOption("worker");
    await page.getByRole("textbox", { name: "Agents" }).fill("translator, summarizer");
    await page.keyboard.press("Enter");
    await page.getByRole("textbox", { name: "Your new key" }).waitFor();
    await page.keyboard.press("Escape");
    await rowsOf(page, "Keys").filter({ hasText: "worker: translator, summarizer" }).waitFor();
    await page.getByRole("button", { name: "Delete key laptop" }).click();
    await page.getByRole("button", { name: "Delete laptop" }).click();
    await page.getByText("Deleted key laptop").waitFor();
    await expectAccessibleEverywhere(page, "keys");
    await page.getByRole("button", { name: "Delete key gateway" }).click();
    await page.getByRole("button", { name: "Delete gateway" }).click();
    await page.getByText("Deleted key gateway").waitFor();
    expect(await world().rota.keys.callerOf(key)).toBeNull();
    await page.reload();
    await page.getByText("This tenant has no keys").waitFor();
    expect(await page.getByLabel("Tenant").locator("option:checked").textContent()).toBe(name);
  });

  test("a tenant is created, limited, disabled and deleted, and its webhook secret is shown once", async () => {
    const { open } = await newAdmin();
    const page = await open("/tenants");
    await rowsOf(page, "Tenants").filter({ hasText: "default" }).first().waitFor();
    await page.keyboard.press("n");
    await page.getByRole("textbox", { name: "Name" }).fill("default");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await page.getByRole("textbox", { name: "Name" }).fill("made in a browser");
    await page.getByRole("spinbutton", { name: "Running tasks" }).fill("7");
    await page.getByRole("button", { name: "Create tenant" }).click();
    // A dialog that closes gives the focus back.
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    const row = rowsOf(page, "Tenants").filter({ hasText: "made in a browser" });
    await page.getByRole("textbox", { name: "Search" }).fill("in a browser");
    await page.keyboard.press("Enter");
    await row.getByText("7 running").waitFor();
    await expectAccessibleEverywhere(page, "tenants");
    await row.getByRole("link").click();
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("button", { name: "Enable" }).waitFor();
    await page.getByRole("button", { name: "New webhook secret" }).click();
    expect(await page.getByRole("textbox", { name: "New webhook secret" }).inputValue()).toMatch(/^whsec_/);
    await page.getByRole("button", { name: "I have stored it" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    const confirm = page.getByRole("button", { name: "Delete made in a browser" });
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByRole("textbox", { name: "Type made in a browser to confirm" }).fill("made in a browser");
    await confirm.click();
    await expect.poll(() => row.count()).toBe(0);
    expect(new URL(page.url()).search).toBe("?q=in+a+browser");
  });

  test("the audit log says who did what and what was refused, of any tenant and key", async () => {
    const tenant = await newTenant(world());
    const { id, key } = await tenant.key("operator");
    const { open } = await newAdmin();
    const page = await open(`/audit?tenantId=${tenant.id}`);
    await page.getByText("No entry matches").waitFor();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    await fetch(`${world().url}/v1/agents`, { method: "POST", headers, body: '{"id":"audited"}' });
    await fetch(`${world().url}/v1/nodes`, { headers });
    await page.reload();
    await rowsOf(page, "Audit log")
      .filter({ hasText: "audited" })
      .filter({ hasText: "operator key" })
      .waitFor();
    await rowsOf(page, "Audit log").filter({ hasText: "refused with 403" }).waitFor();
    await expectAccessibleEverywhere(page, "audit");
    await page.getByLabel("Key").selectOption(id);
    await page.getByLabel("Since").selectOption("1h");
    await expect.poll(() => rowsOf(page, "Audit log").count()).toBe(2);
    await page.goBack();
    expect(await page.getByLabel("Since").inputValue()).toBe("");
  });

  test("settings show the limits of the tenant and the configuration, with what is secret hidden", async () => {
    const { context, open } = await newAdmin();
    await context.route("**/v1/config", (route) =>
      route.fulfill({
        json: {
          storage: "postgres://rota:…@db/rota",
          scheduler: { enabled: true, maxInflight: 20 },
          agents: { research: { executor: { type: "openai", apiKey: "…" } } },
        },
      }),
    );
    const page = await open("/settings");
    await page.getByRole("region", { name: "scheduler" }).getByText("maxInflight").waitFor();
    await page.getByRole("region", { name: "agents" }).getByText("hidden").waitFor();
    await page.getByText("as configured").first().waitFor();
    await expectAccessibleEverywhere(page, "settings");
    await page.getByRole("textbox", { name: "Search" }).fill("INFLIGHT");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("region", { name: "agents" }).count()).toBe(0);
    expect(new URL(page.url()).search).toBe("?q=INFLIGHT");
    await page.getByRole("textbox", { name: "Search" }).fill("nothing like it");
    await page.keyboard.press("Enter");
    await page.getByText("No option matches").waitFor();
    await page.getByRole("button", { name: "Remove all filters" }).click();
    await page.getByRole("region", { name: "agents" }).waitFor();
  });

  test("the doctor examines when asked, and what it found is above every page until it is gone", async () => {
    const { context, open } = await newAdmin();
    const page = await open("/doctor");
    await page.getByText(/^Nothing is wrong/).waitFor();
    await page.getByRole("region", { name: "counters" }).getByRole("img", { name: "Fine" }).waitFor();
    await expectAccessibleEverywhere(page, "doctor");
    const finding = "lane main counts 3 running tasks, and there are 2";
    const checks = [{ name: "counters", ok: false, summary: "1 counter is wrong", findings: [finding] }];
    await context.route("**/v1/doctor", (route) =>
      route.fulfill({
        contentType: "text/event-stream",
        body: `event: report\ndata: ${JSON.stringify({ ok: false, checks })}\n\n`,
      }),
    );
    await page.getByRole("button", { name: "Examine" }).click();
    await page.getByRole("region", { name: "counters" }).getByText(finding).waitFor();
    await page.getByText("The doctor found something wrong in 1 check: counters.").waitFor();
    await expectAccessible(page);
    await context.unroute("**/v1/doctor");
    // Another page, loaded anew: it does not examine again, and still says so.
    await page.goto(`${world().url}/ui/lanes`);
    await page.getByRole("link", { name: "See the doctor" }).click();
    await page.getByText("Something was wrong: counters").waitFor();
    await page.getByRole("button", { name: "Examine" }).click();
    await page.getByText(/^Nothing is wrong/).waitFor();
    expect(await page.getByText("The doctor found something wrong").count()).toBe(0);
  });

  test("after a restart the new node is shown without a reload", async () => {
    const proxy = await openProxy(world().url);
    const { context, open } = await newAdmin({ url: proxy.url });
    let node = "node-before";
    for (const [path, field] of [
      ["**/v1/me", "node"],
      ["**/health", "startedAt"],
    ] as const) {
      await context.route(path, async (route) => {
        const response = await route.fetch().catch(() => undefined);
        if (response === undefined) return route.abort();
        return route.fulfill({ json: { ...(await response.json()), [field]: node } });
      });
    }
    const page = await open("/tasks");
    await page.getByText("Node node-before").waitFor();
    await page.getByRole("button", { name: "Live" }).waitFor();
    proxy.cut();
    await page.getByRole("button", { name: "Offline" }).waitFor();
    node = "node-after";
    proxy.restore();
    await page.getByText("Node node-after").waitFor();
  });

  test("an error of any page is said with a way to try again", async () => {
    const page = await (await newAdmin()).newTab();
    for (const [path, url, what] of [
      // The first page of an admin examines, and then none for a day.
      ["/doctor", "**/v1/doctor", "The report"],
      ["/nodes", "**/v1/nodes", "The nodes"],
      // Before the keys, which are listed by tenant.
      ["/tenants", "**/v1/tenants", "The tenants"],
      ["/keys", "**/v1/keys**", "The keys"],
      ["/audit", "**/v1/audit**", "The audit log"],
      ["/settings", "**/v1/config", "The configuration"],
    ] as const) {
      await expectFault({ page, path: `${world().url}/ui${path}`, url, what });
    }
  });

  test("a phone reaches every page by its More sheet", async () => {
    const { open } = await newAdmin({ width: 390 });
    const page = await open("/tasks");
    for (const name of ["Audit log", "Doctor"]) {
      await page.getByRole("button", { name: "More", exact: true }).click();
      const link = page.getByRole("navigation", { name: "All pages" }).getByRole("link", { name });
      expect((await link.locator("span").boundingBox())?.width).toBeGreaterThan(30);
      await link.click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
    }
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByText("Sign out").waitFor();
    await expectAccessible(page);
  });
}

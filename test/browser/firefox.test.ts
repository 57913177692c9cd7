import { expect, onTestFinished, test } from "vitest";
import { DashboardSource } from "../../src/cli/dashboard/dashboard-source.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { findFirefox } from "./find-browser.ts";
import { FirefoxPage } from "./firefox-page.ts";
import { SETUP_MS } from "./world.ts";

const path = findFirefox();

async function openServer() {
  const rota = await createRota({
    storage: "sqlite::memory:",
    executors: { message: { type: "echo" } },
  });
  const dashboard = new DashboardSource({ basePath: "", environment: {}, log: silentLog });
  const [{ key }] = await Promise.all([
    rota.keys.create({ role: "admin", name: "first" }),
    dashboard.open(),
    rota.start(),
  ]);
  const server = await listen({ rota, dashboard, log: silentLog, host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    await server.close();
    await rota.stop({ graceMs: 0 });
  });
  return { rota, key, url: server.url };
}

// All else is tested in Chromium. Firefox is no package: this is skipped where neither FIREFOX_PATH nor the PATH has one.
test.skipIf(path === undefined)(
  "in Firefox one signs in, sees the overview, submits a task and finds it",
  async () => {
    const { rota, key, url } = await openServer();
    const page = await FirefoxPage.launch(path ?? "");
    onTestFinished(() => page.close());
    await page.goto(`${url}/ui/`);
    await page.type("input[type=password], input:not([type=checkbox])", key);
    await page.click("button[type=submit]");
    await page.waitForText("h2", "Nothing has run yet");
    await page.click("button", "Submit a task");
    await page.type("textarea[name=message]", "from Firefox");
    await page.click("dialog button[type=submit]");
    await page.waitForText("h1", "from Firefox");
    await page.click("nav a", "Tasks");
    await page.waitForText(".lrow", "from Firefox");
    await rota.tasks.submit({ message: "comes by itself" });
    await page.waitForText(".lrow", "comes by itself");
    expect(await page.evaluate("location.pathname")).toBe("/ui/tasks");
  },
  SETUP_MS,
);

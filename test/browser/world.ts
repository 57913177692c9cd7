import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { DashboardSource } from "../../src/cli/dashboard/dashboard-source.ts";
import type { LocalTenant, Rota } from "../../src/interface/rota.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Role } from "../../src/model/role.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { findBrowser } from "./find-browser.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** What the tests saw, to look at. */
const SHOTS = join(ROOT, "node_modules", ".cache", "rota-shots");
/** For what takes moments; a machine that is busy with other tests takes longer. */
const PATIENCE_MS = 15_000;

/** Installing a browser where there is none, and building the dashboard, both once. */
export const SETUP_MS = 400_000;

/** One browser and one server for all tests of a file. Each test has a tenant of its own. */
export interface World {
  readonly browser: Browser;
  /** Browsers of persons whose tests have ended, for the next ones. */
  readonly profiles: Profile[];
  readonly rota: Rota;
  readonly url: string;
  readonly dashboard: DashboardSource;
  close(): Promise<void>;
}

/** Ends a task of the agent `gated`, by its id. */
export const gates = new Map<string, () => void>();

/** Builds the dashboard if that has not been done for these sources. */
export async function openWorld(): Promise<World> {
  const dashboard = new DashboardSource({ basePath: "", environment: {}, log: silentLog });
  const rota = await createRota({
    storage: "sqlite::memory:",
    // All tests share it.
    scheduler: { maxQueueSize: 100_000 },
    lanes: { slow: 1 },
    webhooks: { allow: ["127.0.0.1"] },
    executors: { message: { type: "echo" }, instruction: { type: "echo" }, custom: { type: "echo" } },
  });
  rota.agent("held", (_task, { signal }) => untilAborted(signal));
  rota.agent("gated", ({ taskId }) => new Promise<void>((resolve) => gates.set(taskId, resolve)));
  rota.agent("writing", (_task, { signal, progress }) => {
    progress({ text: "I found two addresses", length: 21 });
    return untilAborted(signal);
  });
  rota.agent("broken", () => {
    throw new Error("the other side hung up");
  });
  rota.agent("counted", (_task, { usage }) => {
    usage({ inputTokens: 7_904, outputTokens: 1_912 });
    return { visited: 8, of: 12 };
  });
  await Promise.all([dashboard.open(), rota.start()]);
  const [browser, server] = await Promise.all([
    launchChromium(),
    // A key, so that the tests sign in as people do.
    rota.keys.create({ role: "admin", name: "first" }).then(() =>
      listen({
        rota,
        dashboard,
        log: silentLog,
        host: "127.0.0.1",
        port: 0,
        rateLimit: { perSecond: 10_000, burst: 10_000, maxExpensive: 100 },
      }),
    ),
  ]);
  return {
    browser,
    profiles: [],
    rota,
    dashboard,
    url: server.url,
    async close() {
      await browser.close();
      await server.close();
      await rota.stop({ graceMs: 0 });
    },
  };
}

async function launchChromium(): Promise<Browser> {
  const { path, environment } = await findBrowser();
  return chromium.launch({
    executablePath: path,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      // A page lives for a second or two: compiling its functions again, faster, costs more than it gains.
      "--js-flags=--no-opt,--no-maglev",
    ],
    env: { ...process.env, ...environment },
  });
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** The same server once more, below a path. It ends with the test. */
export async function listenBelow({ rota }: World, basePath: string): Promise<string> {
  const dashboard = new DashboardSource({ basePath, environment: {}, log: silentLog });
  await dashboard.open();
  const server = await listen({ rota, dashboard, basePath, log: silentLog, host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  return server.url;
}

export interface TestTenant {
  readonly id: string;
  readonly rota: LocalTenant;
  key(role: Role, agentId?: string): Promise<{ readonly id: string; readonly key: string }>;
}

let tenants = 0;

export async function newTenant({ rota }: World): Promise<TestTenant> {
  tenants += 1;
  const { id } = await rota.tenants.create({ name: `tenant ${tenants}` });
  return {
    id,
    rota: rota.tenant(id),
    key: (role, agentId) =>
      rota.keys.create({
        role,
        name: `${role} key`,
        tenantId: id,
        ...(agentId === undefined ? {} : { agentId }),
      }),
  };
}

export interface OpenOptions {
  /** Signed in with it; left out: not signed in. */
  readonly key?: string;
  readonly width?: number;
  readonly theme?: "light" | "dark";
  /** Where the server is, if it is another. */
  readonly url?: string;
  /** The path that a proxy has put in front. */
  readonly basePath?: string;
  /** Without `navigator.locks`, as a page has it that came over plain HTTP from another machine. */
  readonly withoutLocks?: boolean;
}

/** What a person has open. The first tab stays for the next person: opening a new one takes three times the CPU time of a page. */
interface Profile {
  readonly context: BrowserContext;
  readonly firstTab: Page;
}

/** What tests and `newPerson` listen to. */
const EVENTS = ["request", "response", "weberror", "console"] as const;

async function newProfile({ browser }: World): Promise<Profile> {
  // No motion: what is looked at stands still.
  const context = await browser.newContext({ locale: "en-US", reducedMotion: "reduce" });
  context.setDefaultTimeout(PATIENCE_MS);
  return { context, firstTab: await context.newPage() };
}

/** Leaves nothing behind: no tab, no listener, no route, no permission, nothing stored, and nothing that runs. */
async function clear({ context, firstTab }: Profile, origin: string): Promise<void> {
  for (const event of EVENTS) context.removeAllListeners(event);
  cut.delete(firstTab);
  await Promise.all(context.pages().map((page) => (page === firstTab ? undefined : page.close())));
  // One after the other: a navigation that begins while the last route goes is never answered.
  for (const routed of [firstTab, context]) await routed.unrouteAll({ behavior: "ignoreErrors" });
  await context.clearPermissions();
  // An address of the origin without a script: what it stores can be reached, and the tab keeps its process.
  await firstTab.goto(`${origin}/ui/icon.svg`);
  await firstTab.evaluate(() => {
    localStorage.clear();
    sessionStorage.clear();
  });
}

/** A browser as another person has it. What the policy forbids, what breaks and what leaves the origin fails the test. */
export async function newPerson(world: World, options: OpenOptions = {}): Promise<Person> {
  const { key, width = 1280, theme = "light", basePath = "", withoutLocks = false } = options;
  const url = options.url ?? world.url;
  const profile = world.profiles.pop() ?? (await newProfile(world));
  const { context, firstTab } = profile;
  const faults: string[] = [];
  const beforePages = await context.addInitScript(
    ({ key, basePath, withoutLocks }) => {
      // An empty page has no storage.
      if (!location.protocol.startsWith("http")) return;
      if (key !== undefined && sessionStorage.getItem("signed-in-once") === null) {
        for (const path of ["", basePath]) sessionStorage.setItem(`rota.key${path}`, key);
        sessionStorage.setItem("signed-in-once", "yes");
      }
      if (withoutLocks) Object.defineProperty(navigator, "locks", { value: undefined });
      document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
        console.error(`CSP ${violatedDirective} ${blockedURI}`),
      );
    },
    { key, basePath, withoutLocks },
  );
  context.on("request", (request) => {
    if (new URL(request.url()).origin !== url && !/^(?:data|blob):/.test(request.url())) {
      faults.push(`a request leaves the origin: ${request.url()}`);
    }
  });
  context.on("weberror", (error) => faults.push(String(error.error())));
  context.on("console", (message) => {
    // What the browser itself says of answers that are errors is part of what some tests are about.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      faults.push(message.text());
    }
  });
  onTestFinished(async () => {
    // A server of the test alone ends with it: what was stored for it goes with its browser.
    if (url === world.url && !firstTab.isClosed()) {
      await beforePages.dispose();
      await clear(profile, url);
      world.profiles.push(profile);
    } else await context.close();
    expect(faults).toEqual([]);
  });
  let isFirstTabTaken = false;
  const newTab = async () => {
    const page = isFirstTabTaken ? await context.newPage() : firstTab;
    isFirstTabTaken = true;
    await page.setViewportSize({ width, height: 860 });
    await page.emulateMedia({ colorScheme: theme });
    return page;
  };
  return {
    context,
    newTab,
    async open(path) {
      const page = await newTab();
      // What a test looks for it waits for: no need to wait for everything else, too.
      await page.goto(`${url}/ui${path}`, { waitUntil: "commit" });
      return page;
    },
  };
}

export interface Person {
  readonly context: BrowserContext;
  /** An empty tab. */
  newTab(): Promise<Page>;
  /** Opens a page of the dashboard in a new tab. */
  open(path: string): Promise<Page>;
}

/** axe-core without what it says to its readers: half of what every document would have to compile. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of axe-core that a theme can break: all others ask for what is the same in every colour. */
const RULES_OF_COLOUR = ["color-contrast", "link-in-text-block"];

/**
 * Runs axe-core on what is shown: nothing may be wrong with it. Of a page with a dialog that is the dialog: nothing else can be
 * reached. `rules`: only these.
 */
export async function expectAccessible(page: Page, rules?: readonly string[]): Promise<void> {
  // As a debugger does, which the policy of the page does not concern; once for each document.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const violations = await page.evaluate(async (only) => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const runOnly = only === undefined ? tags : { type: "rule" as const, values: [...only] };
    const shown = document.querySelector("dialog:modal") ?? document;
    const { violations } = await axe.run(shown, {
      runOnly,
      resultTypes: ["violations"],
      // Other documents and media, of which there are none, and parts of the result that the test does not read.
      preload: false,
      iframes: false,
      selectors: false,
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  }, rules);
  expect(violations).toEqual([]);
}

/** The same page in light, in dark and on a phone: nothing may be wrong, nor wider than the screen. */
export async function expectAccessibleEverywhere(page: Page, name: string): Promise<void> {
  for (const [width, theme, rules] of [
    [1280, "light"],
    [1280, "dark", RULES_OF_COLOUR],
    [360, "dark"],
  ] as const) {
    await page.setViewportSize({ width, height: 860 });
    await page.emulateMedia({ colorScheme: theme });
    await expectAccessible(page, rules);
    await expectNoSidewaysScroll(page);
    await keepShot(page, `${name}-${width}-${theme}`);
  }
  if (process.env["ROTA_SHOTS"] !== undefined) {
    await page.emulateMedia({ colorScheme: "light" });
    await keepShot(page, `${name}-360-light`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 860 });
}

/** Shows another page of the dashboard as its links do: a third of the CPU time of loading it anew. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, path);
}

export interface Fault {
  readonly page: Page;
  /** The address of a page of the dashboard. */
  readonly path: string;
  /** What of the server fails while it is opened. */
  readonly url: string;
  /** How the page calls it: "The lanes". */
  readonly what: string;
}

/**
 * Makes requests fail until the function that it returns is called. The stream of events stays cut: a page that becomes live
 * reads by itself what had failed, and this is about the button.
 */
export async function breakRequests(
  target: Page | BrowserContext,
  url: string | RegExp,
): Promise<() => void> {
  let isBroken = true;
  await target.route(/\/tasks\/events/, (route) => route.abort());
  await target.route(url, (route) =>
    isBroken
      ? route.fulfill({ status: 500, json: { code: "internal_error", error: "the database is gone" } })
      : route.fallback(),
  );
  return () => {
    isBroken = false;
  };
}

/** Tabs whose stream is cut. */
const cut = new WeakSet<Page>();

/** A page whose request fails says so, and shows what there is once it is tried again. */
export async function expectFault({ page, path, url, what }: Fault): Promise<void> {
  const repair = await breakRequests(page, url);
  if (cut.has(page)) await goTo(page, path);
  else await page.goto(path, { waitUntil: "commit" });
  cut.add(page);
  await page.getByText(`${what} could not be read`).waitFor();
  await page.getByText("The database is gone.").waitFor();
  repair();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => page.getByText(`${what} could not be read`).count()).toBe(0);
}

/** Nothing may be wider than the screen. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
}

/** Kept in `node_modules/.cache/rota-shots`, to be looked at by people; nothing compares them. */
export async function keepShot(page: Page, name: string): Promise<void> {
  if (process.env["ROTA_SHOTS"] === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
}

export interface Proxy {
  readonly url: string;
  /** Cuts every connection, and lets no new one through until `restore`. */
  cut(): void;
  restore(): void;
}

/** A way to the server that a test can cut. */
export async function openProxy(target: string): Promise<Proxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server: Server = createServer((from) => {
    if (isCut) return void from.destroy();
    const to = connect(Number(port), hostname);
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    drop();
    server.close();
  });
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut() {
      isCut = true;
      drop();
    },
    restore() {
      isCut = false;
    },
  };
}

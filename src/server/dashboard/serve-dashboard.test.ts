import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { sendRaw } from "../../../test/support/http.ts";
import { type KeyedServer, openKeyedServer } from "../../../test/support/keyed-server.ts";
import type { DashboardState } from "./dashboard.ts";
import { readDashboardFiles } from "./dashboard-files.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const SCRIPT = `console.log("${"x".repeat(100)}")`;
const PAGE =
  '<meta name="rota-base" content=""><link rel="icon" href="./icon.svg"><script src="./assets/index-1.js"></script>';

async function builtState(basePath = ""): Promise<DashboardState> {
  const folder = mkdtempSync(join(tmpdir(), "rota-dashboard-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "assets"));
  const files = [
    { path: "index.html", encodings: [] },
    { path: "icon.svg", encodings: [] },
    { path: "assets/index-1.js", encodings: ["gzip"] },
  ];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ files }));
  writeFileSync(join(folder, "index.html"), PAGE);
  writeFileSync(join(folder, "icon.svg"), "<svg/>");
  writeFileSync(join(folder, "assets", "index-1.js"), SCRIPT);
  writeFileSync(join(folder, "assets", "index-1.js.gz"), gzipSync(SCRIPT));
  writeFileSync(join(folder, "secret.txt"), "not in the manifest");
  return { kind: "ready", files: await readDashboardFiles(folder, basePath) };
}

async function open(state?: DashboardState, basePath = ""): Promise<KeyedServer> {
  const dashboard = { state: state ?? (await builtState(basePath)) };
  return openKeyedServer({ start: false, server: { dashboard, basePath } });
}

const html = { headers: { accept: BROWSER }, redirect: "manual" } as const;

test("/ leads browsers to the dashboard, whether there are keys or not, and programs to the links", async () => {
  const { ask, key, askWith } = await open();
  for (const method of ["GET", "HEAD"]) {
    const { status, headers } = await ask("/", { ...html, method });
    expect([status, headers.get("location")]).toEqual([302, "/ui/"]);
  }
  expect((await ask("/")).body.links.dashboard).toBe("/ui/");
  const admin = await key({ role: "admin" });
  expect((await ask("/", html)).status).toBe(302);
  expect((await ask("/")).status).toBe(401);
  expect((await askWith(admin, "/")).body.links).toMatchObject({
    dashboard: "/ui/",
    openapi: "/openapi.json",
  });
});

test("without a dashboard there is nothing at /ui/, and / is for programs alone", async () => {
  const { ask } = await openKeyedServer({ start: false });
  const { status, body } = await ask("/", html);
  expect([status, body.links.dashboard]).toEqual([200, undefined]);
  expect((await ask("/ui/", html)).status).toBe(404);
});

test("pages and files need no key, and every API does", async () => {
  const { ask, key } = await open();
  await key({ role: "admin" });
  for (const path of ["/ui", "/ui/", "/ui/tasks/tsk_1?state=failed&x=1", "/ui/icon.svg"]) {
    expect([path, (await ask(path, html)).status]).toEqual([path, 200]);
  }
  // A client that names no type gets the page at the printed address, and no page in place of a file.
  const any = { headers: { accept: "*/*" } };
  expect((await ask("/ui/", any)).status).toBe(200);
  expect((await ask("/ui/assets/none.js", any)).status).toBe(404);
  expect((await ask("/tasks", html)).status).toBe(401);
  expect((await ask("/v1/me", html)).status).toBe(401);
});

test("every response has the content security policy, which allows nothing from other origins", async () => {
  const { ask } = await open();
  for (const path of ["/", "/ui/", "/ui/assets/index-1.js"]) {
    const { headers } = await ask(path, html);
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  }
});

test("files with a hash in their names are kept for ever, the page is asked for again", async () => {
  const { ask } = await open();
  const script = await ask("/ui/assets/index-1.js");
  expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  const page = await ask("/ui/tasks", html);
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const etag = page.headers.get("etag") ?? "";
  const again = await ask("/ui/sessions", { headers: { accept: BROWSER, "if-none-match": `W/${etag}` } });
  expect([again.status, again.body]).toEqual([304, ""]);
  const head = await ask("/ui/tasks", { ...html, method: "HEAD" });
  expect([head.status, head.body, head.headers.get("etag")]).toEqual([200, "", etag]);
});

test("a file is sent compressed to clients that accept that, and as it is to others", async () => {
  const { url } = await open();
  const get = (encoding: string) =>
    sendRaw(
      url,
      `GET /ui/assets/index-1.js HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
    );
  expect(await get("br, gzip")).toContain("content-encoding: gzip");
  for (const none of ["identity", "gzip;q=0", "br"]) {
    expect(await get(none)).not.toContain("content-encoding");
  }
  const { body } = await (async () => {
    const response = await fetch(`${url}/ui/assets/index-1.js`, { headers: { "accept-encoding": "gzip" } });
    return { body: await response.text() };
  })();
  expect(body).toBe(SCRIPT);
  expect(gunzipSync(gzipSync(SCRIPT)).toString()).toBe(body);
});

test.each([
  "/ui/secret.txt",
  "/ui/manifest.json",
  "/ui/assets/none.js",
  "/ui/..%2Fpackage.json",
  "/ui/%2e%2e/%2e%2e/package.json",
])("%s is no file of the dashboard", async (path) => {
  const { ask } = await open();
  const { status, body } = await ask(path);
  expect([status, body.code]).toEqual([404, "not_found"]);
});

test("with a base path it responds both there and at `/`, and the page contains the path", async () => {
  const { ask } = await open(undefined, "/rota");
  for (const path of ["/rota/ui/tasks", "/ui/tasks"]) {
    const { body } = await ask(path, html);
    expect(body).toContain('name="rota-base" content="/rota"');
    expect(body).toContain('src="/rota/ui/assets/index-1.js"');
  }
  expect((await ask("/rota/ui/assets/index-1.js")).status).toBe(200);
  for (const path of ["/", "/rota", "/rota/", "/rota?x=1"]) {
    const { status, headers } = await ask(path, html);
    expect([path, status, headers.get("location")]).toEqual([path, 302, "/rota/ui/"]);
  }
  for (const path of ["/", "/rota/"]) {
    const { links } = (await ask(path)).body;
    expect(links).toMatchObject({ dashboard: "/rota/ui/", health: "/rota/health", tasks: "/rota/tasks" });
  }
  for (const path of ["/rota/v1/me", "/v1/me", "/rota/tasks?limit=1"]) {
    expect([path, (await ask(path)).status]).toEqual([path, 200]);
  }
  expect((await ask("/rotatasks")).status).toBe(404);
});

test("a link from elsewhere opens the dashboard, and reaches nothing else", async () => {
  const { url, ask } = await open();
  // By hand, since `fetch` sets these headers itself.
  const statusOf = async (method: string, path: string, mode: string) => {
    const lines = [
      `${method} ${path} HTTP/1.1`,
      "Host: localhost",
      `Accept: ${BROWSER}`,
      "Sec-Fetch-Site: cross-site",
      `Sec-Fetch-Mode: ${mode}`,
      "Connection: close",
    ];
    const answer = await sendRaw(url, `${lines.join("\r\n")}\r\n\r\n`);
    return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
  };
  expect(await statusOf("GET", "/", "navigate")).toBe(302);
  expect(await statusOf("GET", "/ui/tasks?state=failed", "navigate")).toBe(200);
  for (const mode of ["no-cors", "cors"]) {
    expect(await statusOf("GET", "/", mode)).toBe(403);
    expect(await statusOf("GET", "/ui/assets/index-1.js", mode)).toBe(403);
  }
  for (const path of ["/tasks", "/v1/me", "/uix", "/ui.json", "//ui/"]) {
    expect([path, await statusOf("GET", path, "navigate")]).toEqual([path, 403]);
  }
  expect(await statusOf("HEAD", "/ui/", "navigate")).toBe(403);
  const rebound = await ask("/ui/", { ...html, headers: { ...html.headers, origin: "https://example.com" } });
  expect(rebound.status).toBe(403);
});

test("what is asked for is neither counted nor written down", async () => {
  const { ask, key, rota, askWith } = await open();
  const admin = await key({ role: "admin" });
  await Promise.all(Array.from({ length: 300 }, () => ask("/ui/icon.svg")));
  expect((await askWith(admin, "/v1/me")).status).toBe(200);
  expect((await rota.audit.list()).entries).toEqual([]);
});

test("other methods are refused with those that are allowed", async () => {
  const { ask } = await open();
  for (const path of ["/ui", "/ui/tasks"]) {
    const { status, headers } = await ask(path, { method: "POST" });
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  }
});

test("while it is being built the page says so and asks again, and the API works", async () => {
  const { ask } = await open({ kind: "building" });
  const { status, headers, body } = await ask("/ui/tasks", html);
  expect([status, headers.get("refresh"), headers.get("cache-control")]).toEqual([200, "1", "no-store"]);
  expect(body).toContain("The dashboard is being built");
  expect((await ask("/ui/assets/index-1.js")).status).toBe(404);
  expect((await ask("/tasks")).status).toBe(200);
});

test("when it cannot be built the page says what helps", async () => {
  const { ask } = await open({ kind: "failed", remedy: "Run `npm ci` & <start> again." });
  const { status, headers, body } = await ask("/ui/", html);
  expect([status, headers.get("refresh")]).toEqual([200, null]);
  expect(body).toContain("Run `npm ci` &amp; &lt;start&gt; again.");
});

import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, posix } from "node:path";
import { expect, test } from "vitest";
import { replaceSection } from "./docs/markdown.ts";
import { findCycles } from "./layers/find-cycles.ts";
import { importPicture } from "./layers/import-picture.ts";
import { type FoundImport, type ScannedSource, scanSource } from "./layers/scan-source.ts";

/**
 * Who may import whom. Imports point one way, toward `model`. A part may always import itself; a file belongs to the
 * part with the longest matching path. To change the architecture, change this table.
 */
const PARTS: Record<string, readonly string[]> = {
  "src/model/": [],
  "src/version.ts": [],
  // The clocks of the machine, and waiting by a clock. Runs in browsers, too.
  "src/clock/": ["src/model/"],

  "src/schedules/": ["src/model/", "src/schedules/writ.ts", "src/schedules/accepted-forms.ts"],
  // The forms of phrases, which errors, documentation and MCP show.
  "src/schedules/accepted-forms.ts": ["src/model/"],
  // How phrase and message are separated, which the command line does as agents do.
  "src/schedules/writ.ts": [],
  "src/outbound/": ["src/model/", "src/clock/"],
  "src/config/": ["src/model/", "src/clock/"],

  // The files that lie directly in storage/ are the contract and what every driver shares.
  "src/storage/": ["src/model/"],
  "src/storage/sqlite/": ["src/model/", "src/storage/"],
  "src/storage/postgres/": ["src/model/", "src/storage/"],
  "src/storage/oracle/": ["src/model/", "src/storage/"],
  "src/storage/conformance/": ["src/model/", "src/storage/", "src/storage/oracle/", "src/testing/"],

  "src/executors/": [
    "src/version.ts",
    "src/model/",
    "src/clock/",
    "src/outbound/",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
  ],
  "src/executors/executor.ts": ["src/model/"],
  "src/executors/errors.ts": ["src/model/"],

  // What holds for every attempt, wherever it runs: its error, its log lines, its usage. Runs in browsers, too.
  "src/attempts/": ["src/model/", "src/executors/executor.ts", "src/executors/errors.ts"],

  "src/events/": ["src/model/", "src/clock/", "src/storage/"],
  // The shape of everything that works in the background, and the storage's time as this process sees it.
  "src/services/": ["src/model/", "src/storage/", "src/services/turn-budget.ts"],
  // How the event loop is shared, by whatever has much to do in it.
  "src/services/turn-budget.ts": [],
  "src/metrics/": ["src/model/", "src/storage/"],
  "src/tenants/": ["src/model/", "src/storage/", "src/services/"],
  "src/webhooks/": ["src/model/", "src/clock/", "src/storage/", "src/outbound/", "src/services/"],

  // Contracts, never an implementation.
  "src/engine/": [
    "src/attempts/",
    "src/model/",
    "src/clock/",
    "src/schedules/",
    "src/storage/",
    "src/services/",
    "src/services/turn-budget.ts",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
    "src/metrics/",
  ],

  // What rota.ts and the client both offer, and what the CLI, MCP and the dashboard speak through.
  "src/interface/": ["src/model/", "src/executors/executor.ts"],

  // What the methods of that interface do in this process.
  "src/library/": [
    "src/version.ts",
    "src/model/",
    "src/clock/",
    "src/config/",
    "src/schedules/",
    "src/schedules/writ.ts",
    "src/storage/",
    "src/executors/",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
    "src/outbound/",
    "src/events/",
    "src/tenants/",
    "src/webhooks/",
    "src/services/",
    "src/engine/",
    "src/interface/",
    "src/metrics/",
  ],

  // The one place that joins all parts.
  "src/rota.ts": [
    "src/version.ts",
    "src/library/",
    "src/model/",
    "src/config/",
    "src/schedules/",
    "src/outbound/",
    "src/storage/",
    "src/storage/sqlite/",
    "src/storage/postgres/",
    "src/executors/",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
    "src/events/",
    "src/tenants/",
    "src/webhooks/",
    "src/services/",
    "src/engine/",
    "src/clock/",
    "src/interface/",
    "src/metrics/",
  ],

  "src/api/": ["src/model/"],
  "src/server/": [
    "src/version.ts",
    "src/clock/",
    "src/services/turn-budget.ts",
    "src/model/",
    "src/config/",
    "src/events/",
    "src/tenants/",
    "src/api/",
    "src/rota.ts",
    "src/interface/",
    "src/mcp/",
  ],
  "src/client/": [
    "src/model/",
    "src/clock/",
    "src/attempts/",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
    "src/api/",
    "src/interface/",
  ],
  "src/mcp/": ["src/version.ts", "src/model/", "src/interface/", "src/schedules/accepted-forms.ts"],
  // Holds any worker to the protocol, with a server of its own.
  "src/worker-conformance/": [],
  "src/cli/": [
    "src/executors/",
    "src/executors/executor.ts",
    "src/clock/",
    "src/worker-conformance/",
    "src/version.ts",
    "src/model/",
    "src/schedules/writ.ts",
    "src/config/",
    "src/api/",
    "src/client/",
    "src/mcp/",
    "src/server/",
    "src/rota.ts",
    "src/interface/",
  ],

  // Public surfaces: the library and its helpers for users' tests.
  "src/index.ts": [
    "src/model/",
    "src/config/",
    "src/storage/",
    "src/executors/executor.ts",
    "src/executors/errors.ts",
    "src/client/",
    "src/rota.ts",
    "src/interface/",
  ],
  "src/testing/": ["src/model/", "src/rota.ts", "src/interface/"],
};

/** Loaded only when chosen or called: no other part may load a driver, or MCP, with the file that names it. */
const LOADED_WHEN_CHOSEN = ["src/storage/sqlite/", "src/storage/postgres/", "src/mcp/"];

/** Packages that only these parts may import. */
const PACKAGE_HOMES: Record<string, readonly string[]> = {
  "@modelcontextprotocol/server": ["src/mcp/"],
  "better-sqlite3": ["src/storage/sqlite/"],
  croner: ["src/schedules/"],
  pg: ["src/storage/postgres/"],
  "temporal-polyfill": ["src/schedules/"],
  vitest: ["src/storage/conformance/"],
};

const ENVIRONMENT_READERS = ["src/config/"];

/** Files with an `import()` that cannot be checked by reading, such as one of a user's own module. */
const OPAQUE_IMPORTERS: readonly string[] = [];

const ROOT = join(import.meta.dirname, "..");

function scanFiles(pattern: string): ScannedSource[] {
  const files = globSync(pattern, { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"));
  return files.sort().map((path) => scanSource({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

const SOURCES = scanFiles("src/**/*.ts");

test("every import in src keeps to the table", () => {
  expect(SOURCES).not.toEqual([]);
  expect(SOURCES.flatMap(findFaults)).toEqual([]);
});

/**
 * Includes imports of types: two files that need each other's types are read as one, and a value is soon added to them. Except in
 * the SQLite driver, where a transaction runs the steps of its end, and each step takes the transaction.
 */
test("no file in src imports itself by way of others", () => {
  const counts = (path: string, { kind }: FoundImport) =>
    kind !== "type" || !path.startsWith("src/storage/sqlite/");
  const edges = SOURCES.map(({ path, imports }) => {
    const counted = imports.filter((found) => counts(path, found));
    return [path, counted.flatMap(({ file }) => file ?? [])] as const;
  });
  const cycles = findCycles(new Map(edges));
  expect(cycles.map((cycle) => cycle.join(" → "))).toEqual([]);
});

/** `npx vitest run test/layers.test.ts -u` draws the picture anew. */
test("docs/architecture.md shows the imports between folders", async () => {
  const isShipped = ({ path }: ScannedSource) => !/\.test\.ts$|\/(?:conformance|oracle|testing)\//.test(path);
  const file = join(ROOT, "docs", "architecture.md");
  const picture = importPicture(SOURCES.filter(isShipped));
  const page = replaceSection(readFileSync(file, "utf8"), "imports", `\n${picture}\n`);
  await expect(page).toMatchFileSnapshot(file);
});

test("the dashboard knows of Rota what any HTTP caller has: the client", () => {
  const sources = scanFiles("dashboard/src/**/*.{ts,tsx}").filter(({ path }) => !path.endsWith(".test.ts"));
  expect(sources).not.toEqual([]);
  const ours = sources.flatMap(({ imports }) => imports.flatMap(({ file }) => file ?? []));
  const outside = ours.filter((path) => !path.startsWith("dashboard/src/"));
  expect([...new Set(outside)]).toEqual(["src/client/index.ts"]);
});

test("the table names only parts that it has", () => {
  const named = [
    ...Object.values(PARTS).flat(),
    ...LOADED_WHEN_CHOSEN,
    ...Object.values(PACKAGE_HOMES).flat(),
  ];
  expect(named.filter((part) => !(part in PARTS))).toEqual([]);
});

test("the table has no circle", () => {
  expect(findCycles(new Map(Object.entries(PARTS)))).toEqual([]);
});

test("a cycle is found wherever it begins, with each file on its way", () => {
  expect(
    findCycles(
      new Map([
        ["a", ["b", "c"]],
        ["b", ["c"]],
        ["c", []],
      ]),
    ),
  ).toEqual([]);
  expect(
    findCycles(
      new Map([
        ["a", ["b"]],
        ["b", ["c"]],
        ["c", ["b"]],
      ]),
    ),
  ).toEqual([["b", "c", "b"]]);
  expect(findCycles(new Map([["a", ["a"]]]))).toEqual([["a", "a"]]);
});

test("an operation has the same file name in every driver", () => {
  const files = new Map<string, Map<string, string>>();
  for (const driver of ["sqlite", "postgres", "oracle"]) {
    const opener = readFileSync(join(ROOT, "src/storage", driver, "connection/open.ts"), "utf8");
    for (const [, names = "", file = ""] of opener.matchAll(/^import \{([^}]*)\} from "(\.[^"]*)";/gm)) {
      for (const name of names.split(",").map((each) => each.trim().replace(driver, ""))) {
        if (name !== "") files.set(name, (files.get(name) ?? new Map()).set(driver, file));
      }
    }
  }
  const shared = [...files].filter(([, byDriver]) => byDriver.size > 1);
  expect(shared.length).toBeGreaterThan(30);
  const differing = shared.filter(([, byDriver]) => new Set(byDriver.values()).size > 1);
  expect(Object.fromEntries(differing)).toEqual({});
});

/** Everything in one file that the rules do not allow, one sentence each. */
function findFaults({ path, imports, opaqueImports, code }: ScannedSource): string[] {
  // A test belongs where the file it tests does.
  const part = partOf(path.replace(/\.test\.ts$/, ".ts"));
  if (part === undefined) return [`${path} belongs to no part of the table in test/layers.test.ts`];
  // A test may take in whatever it needs to prove its promise.
  if (path.endsWith(".test.ts")) return [];

  const faults: string[] = [];
  for (const { specifier, file, kind, line } of imports) {
    const fault = file === null ? faultOfPackage(part, specifier, kind) : faultOfOurs(part, file, kind);
    if (fault !== undefined) faults.push(`${path}:${line} ${fault}`);
  }
  if (!OPAQUE_IMPORTERS.includes(path)) {
    for (const line of opaqueImports)
      faults.push(`${path}:${line} imports what cannot be read from the source`);
  }
  if (!ENVIRONMENT_READERS.some((reader) => path.startsWith(reader))) {
    if (ENVIRONMENT.test(code)) faults.push(`${path} reads the environment, which only src/config may`);
  }
  if (part === "src/model/") {
    for (const [, name] of code.matchAll(IMPURE)) faults.push(`${path} uses ${name}, but src/model is pure`);
  }
  return faults;
}

const ENVIRONMENT =
  /\bprocess\s*\??\.\s*env\b|\bprocess\s*(?:\?\.)?\s*\[|\{[^{}]*\benv\b[^{}]*\}\s*=\s*process\b/;
const IMPURE =
  /(?<![.\w$])(setTimeout|setInterval|setImmediate|queueMicrotask|fetch|process|Date\.now|Math\.random|performance|new Date\(\))(?![\w$])/g;

function faultOfOurs(part: string, target: string, kind: string): string | undefined {
  const targetPart = partOf(target);
  if (targetPart === undefined) return `imports ${target}, which belongs to no part of the table`;
  if (target.endsWith(".test.ts")) return `imports ${target}, a test`;
  if (targetPart === part) return undefined;
  if (!PARTS[part]?.includes(targetPart))
    return `imports ${target}, but ${part} may not import ${targetPart}`;
  if (LOADED_WHEN_CHOSEN.includes(targetPart) && kind === "static") {
    return `loads ${target}, which is to be loaded only when chosen: import it with import()`;
  }
  return undefined;
}

function faultOfPackage(part: string, specifier: string, kind: string): string | undefined {
  if (isBuiltin(specifier)) {
    if (part === "src/model/") return `imports ${specifier}, but src/model is pure`;
    if (part === "src/clock/") return `imports ${specifier}, but src/clock runs in browsers, too`;
    // `env` from node:process would be the environment by another name.
    return /^(?:node:)?process$/.test(specifier) ? `imports ${specifier}: use the global process` : undefined;
  }
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  const homes = PACKAGE_HOMES[name];
  if (homes === undefined || homes.includes(part) || kind === "type") return undefined;
  return `imports ${name}, which only ${homes.join(" and ")} may`;
}

/** The part with the longest path that the file lies under; none for a folder the table does not know. */
function partOf(path: string): string | undefined {
  const candidates = Object.keys(PARTS).filter((part) => belongsTo(path, part));
  return candidates.sort((a, b) => b.length - a.length)[0];
}

function belongsTo(path: string, part: string): boolean {
  if (!part.endsWith("/")) return path === part;
  // storage/ itself is the contract: a folder in it must be a part of its own, or a new driver would slip in.
  if (part === "src/storage/") return posix.dirname(path) === "src/storage";
  return path.startsWith(part);
}

function faultsIn(path: string, text: string): string[] {
  return findFaults(scanSource({ path, text }));
}

test("the check lets pass what the table allows", () => {
  expect(faultsIn("src/engine/work/intake.ts", 'import { Task } from "../../model/task.ts";')).toEqual([]);
  expect(faultsIn("src/engine/work/intake.ts", 'import { now } from "./service.ts";')).toEqual([]);
  expect(
    faultsIn("src/rota.ts", 'const { open } = await import("./storage/sqlite/connection/open.ts");'),
  ).toEqual([]);
  expect(faultsIn("src/storage/sqlite/connection/open.ts", 'import Database from "better-sqlite3";')).toEqual(
    [],
  );
  expect(faultsIn("src/config/load.ts", "export const home = process.env.HOME;")).toEqual([]);
  expect(
    faultsIn(
      "src/engine/work/intake.test.ts",
      'import "../../storage/sqlite/connection/open.ts"; process.env.X;',
    ),
  ).toEqual([]);
  expect(faultsIn("src/model/a.ts", "clock.setTimeout(new Date(dueAt)); // Date.now()")).toEqual([]);
});

test.each([
  ["an import against the arrows", "src/model/task.ts", 'import "../engine/intake.ts";'],
  ["a type taken against the arrows", "src/model/task.ts", 'import type { A } from "../storage/storage.ts";'],
  ["a re-export against the arrows", "src/schedules/cron.ts", 'export * from "../storage/storage.ts";'],
  [
    "a late import against the arrows",
    "src/engine/work/runner.ts",
    'await import("../../executors/echo.ts");',
  ],
  [
    "an implementation where only contracts are known",
    "src/engine/a.ts",
    'import "../storage/sqlite/open.ts";',
  ],
  ["a driver that imports another driver", "src/storage/postgres/a.ts", 'import "../sqlite/database.ts";'],
  ["a driver loaded before it is chosen", "src/rota.ts", 'import { open } from "./storage/sqlite/open.ts";'],
  ["a driver's package outside the driver", "src/engine/a.ts", 'import { Pool } from "pg";'],
  ["a test tool in shipped code", "src/testing/index.ts", 'import { test } from "vitest";'],
  ["an import of a test", "src/engine/a.ts", 'import "./intake.test.ts";'],
  ["a file in a folder the table does not know", "src/utils/strings.ts", ""],
  ["a driver the table does not know", "src/storage/mysql/open.ts", ""],
  ["a file the table does not know", "src/helpers.ts", ""],
  ["a test in a folder the table does not know", "src/utils/strings.test.ts", ""],
  ["an import from a folder the table does not know", "src/engine/a.ts", 'import "../utils/strings.ts";'],
  ["an import that cannot be checked", "src/engine/a.ts", "await import(`../storage/${name}/open.ts`);"],
  ["an environment variable read outside config", "src/engine/a.ts", "process.env.HOME;"],
  ["the environment taken as a whole", "src/server/a.ts", "const { env } = process;"],
  ["the environment by its other name", "src/server/a.ts", 'import { env } from "node:process";'],
  ["a file system in the model", "src/model/task.ts", 'import { readFileSync } from "node:fs";'],
  ["a network in the model", "src/model/task.ts", 'import type { Socket } from "net";'],
  ["a timer of Node in a clock", "src/clock/pause.ts", 'import { setTimeout } from "node:timers/promises";'],
  ["a timer in the model", "src/model/task.ts", "setTimeout(() => {}, 1);"],
  ["the wall clock in the model", "src/model/task.ts", "export const at = Date.now();"],
  ["chance in the model", "src/model/task.ts", "export const id = Math.random();"],
])("the check refuses %s", (_what, path, text) => {
  expect(faultsIn(path, text)).toHaveLength(1);
});

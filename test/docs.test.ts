import { execFile, spawnSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { llmsFullTxt, llmsTxt } from "../scripts/llms.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { EXIT_CODES } from "../src/cli/terminal/exit-code.ts";
import { check } from "../src/config/check.ts";
import { OPTIONS } from "../src/config/options.ts";
import { parseYaml } from "../src/config/parse-yaml.ts";
import { configSchema } from "../src/config/schema.ts";
import type { Executor } from "../src/executors/executor.ts";
import { TOOLS } from "../src/mcp/tools.ts";
import { DELIVERY_WAITS } from "../src/model/delivery.ts";
import { ERROR_STATUS } from "../src/model/errors.ts";
import { EVENT_TYPES } from "../src/model/event.ts";
import { EXECUTOR_FIELDS } from "../src/model/executor-config.ts";
import { REASON_CODES } from "../src/model/explanation.ts";
import { BATCH } from "../src/model/input/batch-input.ts";
import { SCHEDULE } from "../src/model/input/schedule-schema.ts";
import { describeField, type Field } from "../src/model/input/schema.ts";
import { MESSAGE_REQUEST } from "../src/model/input/session-input.ts";
import { TASK } from "../src/model/input/task-schema.ts";
import { NOTIFICATION_KINDS } from "../src/model/notification.ts";
import { ROLES, type Role } from "../src/model/role.ts";
import { RUN_STATUSES } from "../src/model/run.ts";
import { CATCH_UPS, OVERLAPS, SCHEDULE_STATUSES } from "../src/model/schedule.ts";
import { SESSION_ENDS } from "../src/model/session.ts";
import { TASK_STATES } from "../src/model/task-state.ts";
import { ACCEPTED_FORMS } from "../src/schedules/accepted-forms.ts";
import { createServer } from "../src/server/create-server.ts";
import { isAllowed, type Permission } from "../src/tenants/permissions.ts";
import { Latch } from "../src/testing/signals.ts";
import { signature } from "../src/webhooks/signature.ts";
import { followCommand, followProgram, runCommands } from "./docs/commands.ts";
import { codeBlocks, formatTable, namesIn, replaceSection, section, tableRows } from "./docs/markdown.ts";
import { isSameShape, isSameText } from "./docs/same-shape.ts";
import { savedAs } from "./docs/steps.ts";
import { eventually, newFolder, startServer } from "./end-to-end/server-process.ts";
import { readMetrics } from "./support/prometheus.ts";
import { openTestRota } from "./support/rota.ts";
import { routesOf } from "./support/routes.ts";
import { serveConfig } from "./support/serve-config.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "examples/README.md",
  ...globSync("docs/**/*.md", { cwd: ROOT }).sort(),
];
const EXAMPLES = globSync("examples/*.ts", { cwd: ROOT, exclude: ["examples/*.test.ts"] }).sort();

/** Pages that test/guides.test.ts follows from their first step to the last. */
const FOLLOWED = ["README.md", ...PAGES.filter((page) => page.startsWith("docs/guides/"))];

/** Where a server listens by default. */
const SERVER_URL = "http://127.0.0.1:7682";

function read(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

// ------------------------------------------------------------------------------------------------------- programs

/** Runs a program that imports "rota" in an empty folder. Returns what it prints. */
async function runProgram(file: string): Promise<string> {
  const args = ["--import", join(ROOT, "scripts", "from-source.ts"), await withServer(file)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: newFolder() });
  return stdout.replaceAll(/ +$/gm, "").trim();
}

/** A program that talks to the server of the documentation is given one of its own. */
async function withServer(file: string): Promise<string> {
  const text = readFileSync(file, "utf8");
  if (!text.includes(SERVER_URL)) return file;
  const { url } = await serveConfig({ folder: newFolder() });
  const copy = join(newFolder(), "program.mts");
  writeFileSync(copy, text.replaceAll(SERVER_URL, url));
  return copy;
}

/** What a program says that it prints: its last comment, or those behind its console.log. */
function promisedOutput(program: string): string | undefined {
  const comment = /^\/\/ Prints:\n((?:\/\/ .*\n?)+)/m.exec(program)?.[1];
  if (comment !== undefined) return comment.replaceAll(/^\/\/ /gm, "").trim();
  const behind = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, output]) => output);
  return behind.length === 0 ? undefined : behind.join("\n");
}

test.each(EXAMPLES)("%s prints what it says", async (example) => {
  const promised = promisedOutput(read(example));
  expect(promised).toBeDefined();
  expect(await runProgram(join(ROOT, example))).toBe(promised);
});

test("examples/README.md lists every example, and every folder of them", () => {
  const listed = tableRows(read("examples/README.md")).map(
    ([, example = ""]) => /\]\(([^)]+)\)/.exec(example)?.[1],
  );
  const present = readdirSync(join(ROOT, "examples")).filter((name) => name !== "README.md");
  expect(listed.sort()).toEqual(present.sort());
});

const programs = PAGES.flatMap((page) =>
  codeBlocks(read(page))
    .filter((block) => block.language === "ts" && savedAs(block) === null)
    .map((block) => ({ place: `${page}:${block.line}`, ...block })),
);

test.each(programs)("the program at $place runs", async ({ text }) => {
  const excerpt = /^\/\/ (examples\/\S+)\n(.*)$/s.exec(text);
  if (excerpt !== null) {
    // Part of a file that the tests run.
    expect(read(excerpt[1] as string)).toContain(excerpt[2]);
    return;
  }
  const file = join(newFolder(), "program.mts");
  writeFileSync(file, text);
  const output = await runProgram(file);
  const promised = promisedOutput(text);
  if (promised !== undefined) expect(output).toBe(promised);
});

test("the program of the README runs in the folder of a server that was started as the README says", async () => {
  const folder = newFolder();
  await startServer({ folder, storage: configSchema.parse({}).storage });
  const args = [
    "--import",
    join(ROOT, "scripts", "from-source.ts"),
    join(ROOT, "examples", "quick-start.ts"),
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
  expect(stdout).toBe("done Hello, world!\n");
});

test("the program of the README is the first example, and that of the page on embedding too", () => {
  for (const page of ["README.md", "docs/embedding.md"]) {
    expect(codeBlocks(read(page)).find(({ language }) => language === "ts")?.text).toBe(
      read("examples/quick-start.ts"),
    );
  }
});

const hasPython = spawnSync("python3", ["--version"]).status === 0;

test.skipIf(!hasPython)(
  "the Python program of docs/webhooks.md verifies what Rota signs, and nothing else",
  () => {
    const shown = codeBlocks(read("docs/webhooks.md")).find(({ language }) => language === "python");
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const [id, timestamp, body] = [
      "whd_1_2",
      Math.floor(Date.now() / 1_000),
      '{"tenantId":"ten_1","result":"grüße"}',
    ];
    const headers = {
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signature(keys, { id, timestamp, body }),
    };
    const isGenuine = (secret: Buffer, given: object, text: string): string => {
      const request = JSON.stringify([`whsec_${secret.toString("base64")}`, given, text]);
      const program = `${shown?.text}\nimport json, sys\nsecret, headers, body = json.load(sys.stdin)\nprint(is_genuine(secret, headers, body.encode()))`;
      return spawnSync("python3", ["-c", program], { input: request, encoding: "utf8" }).stdout.trim();
    };
    for (const key of keys) expect(isGenuine(key, headers, body)).toBe("True");
    expect(isGenuine(Buffer.alloc(32, 3), headers, body)).toBe("False");
    expect(isGenuine(Buffer.alloc(32, 1), headers, body.replace("ten_1", "ten_2"))).toBe("False");
    expect(isGenuine(Buffer.alloc(32, 1), { ...headers, "webhook-timestamp": "1" }, body)).toBe("False");
    expect(isGenuine(Buffer.alloc(32, 1), {}, body)).toBe("False");
  },
);

// ------------------------------------------------------------------------------------------------------- commands

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

/** A folder with the first configuration that a page shows: its commands are for a server that has it. */
function folderWithConfiguration(blocks: ReturnType<typeof codeBlocks>): string {
  const folder = newFolder();
  const shown = blocks.find(({ language, text }) => language === "json" && /^\{\s*"executors"/.test(text));
  if (shown !== undefined) writeFileSync(join(folder, "rota.config.json"), shown.text);
  return folder;
}

describe.skipIf(!hasCurl)("where curl is installed:", () => {
  test.each(PAGES.filter((page) => read(page).includes("curl -s") && !FOLLOWED.includes(page)))(
    "the commands of %s print what it shows",
    async (page) => {
      const blocks = codeBlocks(read(page));
      const server = await serveConfig({ folder: folderWithConfiguration(blocks) });
      let kept = { TASK: "", ROTA_KEY: "" };
      for (const [index, { language, text, line }] of blocks.entries()) {
        if (language !== "sh" || !text.includes("curl -s")) continue;
        const place = `${page}:${line}`;
        const shown = blocks[index + 1];
        if (text.includes("curl -sN")) {
          const isEnough = (output: string) => isSameText(shown?.text ?? "", output);
          await followCommand(text, { url: server.url, isEnough });
          continue;
        }
        const run = async () => {
          const ran = await runCommands(text, { url: server.url, kept });
          expect(ran.stderr, place).toBe("");
          return ran;
        };
        let ran = await run();
        const isAsShown = () => {
          if (shown?.language === "text") return isSameText(shown.text, ran.output);
          const answer = JSON.parse(ran.output);
          return shown?.language !== "json" || isSameShape(JSON.parse(shown.text), answer);
        };
        // A task that was just submitted may still be on its way: looking again changes nothing.
        const isLook = !/ -d | -X /.test(text.trim().split("\n").at(-1) ?? "");
        await eventually(async () => {
          if (isAsShown()) return true;
          if (!isLook) throw new Error(`${place} answers ${ran.output}`);
          ran = await run();
          return false;
        }, `${place} to answer as shown`).catch((error) => {
          throw new Error(`${error.message}; it answers ${ran.output}`);
        });
        kept = ran.kept;
      }
    },
  );
});

test.skipIf(!hasCurl)(
  "a reader who follows the page from the first key to tenants has one key, and it is a real one",
  async () => {
    const { url } = await serveConfig({ folder: newFolder() });
    const commandsOf = (page: string) =>
      codeBlocks(read(page)).find(({ language, text }) => language === "sh" && text.includes("/v1/keys"))
        ?.text ?? "";
    const first = await runCommands(commandsOf("docs/keys.md"), { url, kept: { TASK: "", ROTA_KEY: "" } });
    const next = await runCommands(commandsOf("docs/tenants.md"), { url, kept: first.kept });
    expect(next.kept.ROTA_KEY).toBe(first.kept.ROTA_KEY);
    expect(JSON.parse(next.output)).toMatchObject({ name: "acme" });
    // In another shell, which does not have the key, the response of the server is no key.
    const other = await runCommands(commandsOf("docs/tenants.md"), { url, kept: { TASK: "", ROTA_KEY: "" } });
    expect(other.output).not.toContain("acme");
    expect(other.kept.ROTA_KEY).toBe("");
  },
);

const browserPrograms = PAGES.flatMap((page) =>
  codeBlocks(read(page))
    .filter((block) => block.language === "js" && savedAs(block) === null)
    .map((block) => ({ place: `${page}:${block.line}`, ...block })),
);

test.each(browserPrograms)(
  "the program for browsers at $place reports a task that is done",
  async ({ text }) => {
    const server = await serveConfig({ folder: newFolder() });
    await followProgram(text, {
      url: server.url,
      isEnough: (output) => /^tsk_\S+ hello$/m.test(output),
      prompt: () => server.ask("/tasks", { json: { message: "hello" } }),
    });
  },
);

test("the commands for npm exist", () => {
  const { scripts } = JSON.parse(read("package.json"));
  for (const page of PAGES) {
    for (const [, name] of read(page).matchAll(/npm run ([\w:]+)/g))
      expect(scripts, page).toHaveProperty([name as string]);
  }
});

// --------------------------------------------------------------------------------------------------------- tables

test("docs/errors.md has every code with its status, and no other", () => {
  const rows = tableRows(section(read("docs/errors.md"), "codes"));
  expect(rows.map(([code, status]) => [code?.replaceAll("`", ""), Number(status)])).toEqual(
    Object.entries(ERROR_STATUS),
  );
});

test("docs/tasks.md has every state, and no other", () => {
  expect(namesIn(section(read("docs/tasks.md"), "states"))).toEqual([...TASK_STATES]);
});

test("docs/events.md has every type of event, and no other", () => {
  expect(namesIn(section(read("docs/events.md"), "events"))).toEqual([...EVENT_TYPES]);
});

test("docs/notifications.md has every kind of notification, and no other", () => {
  expect(namesIn(section(read("docs/notifications.md"), "kinds"))).toEqual([...NOTIFICATION_KINDS]);
});

test("docs/sessions.md has every way in which a session ends a task, and no other", () => {
  expect(namesIn(section(read("docs/sessions.md"), "ends"))).toEqual(Object.values(SESSION_ENDS));
});

test.each([
  ["run statuses", RUN_STATUSES],
  ["overlaps", OVERLAPS],
  ["catch ups", CATCH_UPS],
  ["schedule statuses", SCHEDULE_STATUSES],
])("docs/schedules.md has all %s, and no other", (name, known) => {
  expect(namesIn(section(read("docs/schedules.md"), name))).toEqual([...known]);
});

test("docs/webhooks.md has everything that a callback waits for, and no other", () => {
  expect(namesIn(section(read("docs/webhooks.md"), "waits"))).toEqual([...DELIVERY_WAITS]);
});

test("docs/http.md has every reason why a task waits, and no other", () => {
  expect(namesIn(section(read("docs/http.md"), "reasons"))).toEqual([...REASON_CODES]);
});

/** `npx vitest run test/docs.test.ts -u` writes the tables anew. */
test.each([
  ["tasks.md", TASK],
  ["batches.md", BATCH],
  ["sessions.md", MESSAGE_REQUEST],
  ["schedules.md", SCHEDULE],
])("docs/%s has every field with what the schema says of it", async (page, { fields }) => {
  const rows = Object.entries<Field>(fields).map(([name, field]) => [
    `\`${name}\``,
    describeField(field) ?? "",
  ]);
  const table = formatTable([["field", ""], ...rows]);
  const text = replaceSection(read(`docs/${page}`), "fields", table);
  await expect(text).toMatchFileSnapshot(join(ROOT, "docs", page));
});

test("docs/http.md has every route of the server, and no other", async () => {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log });
  onTestFinished(() => app.close());
  const served = (await routesOf(app))
    .filter(({ method }) => method !== "HEAD")
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  // What exists with and without /v1 is listed without.
  const wanted = served.filter(
    (route) => !served.includes(route.replace("/v1/", "/")) || !route.includes("/v1/"),
  );
  expect(namesIn(section(read("docs/http.md"), "routes")).sort()).toEqual(wanted.sort());
});

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/keys.md has every route with the roles that may use it", async () => {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log });
  onTestFinished(() => app.close());
  const routes = (await routesOf(app)).filter(({ method }) => method !== "HEAD");
  const paths = new Set(routes.map(({ path }) => path));
  const rows = routes
    .filter(({ path }) => !path.startsWith("/v1/") || !paths.has(path.replace("/v1/", "/")))
    .map(({ method, path, access }) => [
      `\`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}\``,
      ...ROLES.map((role) => mayUse(role, access as Permission)),
    ]);
  const table = formatTable([["route", ...ROLES.map((role) => `\`${role}\``)], ...rows]);
  const page = replaceSection(read("docs/keys.md"), "roles", table);
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "keys.md"));
});

function mayUse(role: Role, access: Permission): string {
  if (access === "open") return "no key";
  if (!isAllowed(role, access)) return "";
  return role === "agent" && (access === "readOwn" || access === "submit") ? "its own" : "yes";
}

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/metrics.md has every metric as the server describes it", async () => {
  const { rota } = await openTestRota();
  // Labels appear with the first number: one task runs and has cost something, another waits for it.
  const counted = new Latch();
  const executor: Executor = (_task, { usage }) => {
    usage({ inputTokens: 1 });
    counted.open();
    return new Promise(() => {});
  };
  rota.agent("counting", { maxInflight: 1, executor });
  await rota.start();
  for (const message of ["runs", "waits"]) await rota.tasks.submit({ agentId: "counting", message });
  await counted.opened;
  const rows = [...readMetrics(await rota.metrics()).values()].map(({ name, type, help, samples }) => [
    `\`${name}\``,
    type,
    labelsOf([...samples.keys()][0] ?? ""),
    help,
  ]);
  const page = replaceSection(
    read("docs/metrics.md"),
    "metrics",
    formatTable([["metric", "type", "labels", ""], ...rows]),
  );
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "metrics.md"));
});

function labelsOf(sample: string): string {
  const names = [...sample.matchAll(/(\w+)="/g)].map(([, name]) => name).filter((name) => name !== "le");
  return names.map((name) => `\`${name}\``).join(", ");
}

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/configuration.md has every option as the schema describes it", async () => {
  const rows = OPTIONS.map(({ path, defaultValue, description }) => {
    const shown = typeof defaultValue === "string" ? defaultValue : JSON.stringify(defaultValue);
    return [`\`${path.join(".")}\``, shown ? `\`${shown}\`` : "", description];
  });
  const table = formatTable([["option", "default", ""], ...rows]);
  const page = replaceSection(read("docs/configuration.md"), "options", table);
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "configuration.md"));
});

test("docs/executors.md has every type of executor with its fields, and no other", () => {
  const rows = tableRows(section(read("docs/executors.md"), "types"));
  expect(rows.map(([type, fields]) => [type, fields])).toEqual(
    Object.entries(EXECUTOR_FIELDS).map(([type, fields]) => [
      `\`${type}\``,
      Object.keys(fields)
        .map((field) => `\`${field}\``)
        .join(", "),
    ]),
  );
});

test("docs/configuration.md shows how the name of a variable follows from its option", () => {
  const shown = tableRows(section(read("docs/configuration.md"), "variables"));
  const variables = new Map(
    OPTIONS.map(({ path, variable }) => [`\`${path.join(".")}\``, `\`${variable}\``]),
  );
  expect(shown.length).toBeGreaterThan(2);
  for (const [option = "", variable] of shown) expect(variables.get(option), option).toBe(variable);
});

test("docs/configuration.md shows the same configuration as JSON and as YAML", () => {
  const blocks = codeBlocks(read("docs/configuration.md"));
  const [json, yaml] = ["json", "yaml"].map(
    (wanted) => blocks.find(({ language }) => language === wanted)?.text ?? "",
  );
  expect(parseYaml(yaml as string)).toEqual({ ok: true, value: JSON.parse(json as string) });
});

test.each(["docs/configuration.md", "docs/executors.md"])(
  "the configurations that %s shows are right ones",
  (page) => {
    const shown = codeBlocks(read(page))
      .filter(({ language }) => language === "json")
      .map(({ text }) => JSON.parse(text))
      // The output of a command is no configuration.
      .filter((value) => value.taskId === undefined);
    expect(shown).not.toEqual([]);
    for (const value of shown) expect(check(configSchema, value)).toMatchObject({ ok: true });
  },
);

/** `npx vitest run test/docs.test.ts -u` writes the tables anew. */
test("docs/cli.md has every command and every exit code as the command line describes them", async () => {
  const commands = COMMANDS.map(({ name, description }) => [`\`${name}\``, description]);
  const codes = Object.entries(EXIT_CODES).map(([code, meaning]) => [code, meaning]);
  const withCommands = replaceSection(
    read("docs/cli.md"),
    "commands",
    formatTable([["command", ""], ...commands]),
  );
  const page = replaceSection(withCommands, "exit codes", formatTable([["code", ""], ...codes]));
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "cli.md"));
});

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/mcp.md has every tool with its arguments", async () => {
  const rows = TOOLS.map(({ name, description, fields }) => {
    const named = Object.entries(fields).map(([field, { required }]) => `\`${field}\`${required ? "" : "?"}`);
    return [`\`${name}\``, description, named.join(", ")];
  });
  const table = formatTable([["tool", "", "arguments"], ...rows]);
  const page = replaceSection(read("docs/mcp.md"), "tools", table);
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "mcp.md"));
});

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/schedules.md has every form of a schedule that is accepted", async () => {
  const code = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;
  const rows = ACCEPTED_FORMS.map(({ form, kind, example, meaning }) => [
    form.split(" | ").map(code).join(", "),
    kind,
    code(example),
    meaning,
  ]);
  const table = formatTable([["phrase", "kind", "example", ""], ...rows]);
  const page = replaceSection(read("docs/schedules.md"), "phrases", table);
  await expect(page).toMatchFileSnapshot(join(ROOT, "docs", "schedules.md"));
});

/** `npm run llms`, or `npx vitest run test/docs.test.ts -u`, writes the files anew. */
test("llms.txt and llms-full.txt have the pages as they are", async () => {
  const full = llmsFullTxt();
  await expect(llmsTxt()).toMatchFileSnapshot(join(ROOT, "llms.txt"));
  await expect(full).toMatchFileSnapshot(join(ROOT, "llms-full.txt"));
  for (const page of ["docs/guides/first-agent.md", "docs/http.md"])
    expect(full).toContain(`\nPage: ${page}\n`);
  expect(full).not.toContain("docs/decisions/README.md\n");
  // A model is to be able to read all of it: some hundred thousand tokens.
  expect(full.length).toBeLessThan(450_000);
});

test("the figures of the README are those of docs/benchmarks.md", () => {
  const measured = new Set(
    read("docs/benchmarks.md")
      .split(/\|| \(|\n/)
      .map((cell) => cell.trim()),
  );
  const figures = tableRows(section(read("README.md"), "figures")).flatMap(([, ...cells]) => cells);
  expect(figures.length).toBeGreaterThan(5);
  for (const figure of figures) expect(measured, figure).toContain(figure);
});

// ---------------------------------------------------------------------------------------------------------- links

test.each(PAGES)("what %s points to is there", (page) => {
  const text = read(page);
  for (const [, target = ""] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
    const [file, anchor] = target.split("#") as [string, string | undefined];
    const path = file === "" ? join(ROOT, page) : join(ROOT, dirname(page), file);
    expect(existsSync(path), `${page} → ${target}`).toBe(true);
    if (anchor !== undefined)
      expect(anchors(readFileSync(path, "utf8")), `${page} → ${target}`).toContain(anchor);
  }
  for (const [, path = ""] of text.matchAll(/`((?:src|test|docs|examples)\/[\w./-]*)`/g)) {
    expect(existsSync(join(ROOT, path)), `${page} → ${path}`).toBe(true);
  }
});

function anchors(page: string): string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
}

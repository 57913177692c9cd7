import { execFile, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { taskInput } from "../src/api/tasks.ts";
import { check } from "../src/config/check.ts";
import { OPTIONS } from "../src/config/options.ts";
import { configSchema } from "../src/config/schema.ts";
import { ERROR_STATUS } from "../src/model/errors.ts";
import { EVENT_TYPES } from "../src/model/event.ts";
import { EXECUTOR_FIELDS } from "../src/model/executor-config.ts";
import { DEFAULT_RETRY_POLICY } from "../src/model/retry-policy.ts";
import { parseTaskInput } from "../src/model/task-input.ts";
import { TASK_STATES } from "../src/model/task-state.ts";
import { codeBlocks, formatTable, namesIn, replaceSection, section, tableRows } from "./docs/markdown.ts";
import { isSameShape } from "./docs/same-shape.ts";
import { eventually, newFolder, startServer } from "./end-to-end/server-process.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGES = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: ROOT }).sort()];
const EXAMPLES = globSync("examples/*.ts", { cwd: ROOT, exclude: ["examples/*.test.ts"] }).sort();

function read(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

// ------------------------------------------------------------------------------------------------------- programs

/** Runs a program that imports "rota" in an empty folder, and answers what it prints. */
async function runProgram(file: string): Promise<string> {
  const args = ["--import", join(ROOT, "scripts", "from-source.ts"), file];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: newFolder() });
  return stdout.replaceAll(/ +$/gm, "").trim();
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

const programs = PAGES.flatMap((page) =>
  codeBlocks(read(page))
    .filter(({ language }) => language === "ts")
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

test("the program of the README is the first example, and that of the page on embedding too", () => {
  for (const page of ["README.md", "docs/embedding.md"]) {
    expect(codeBlocks(read(page)).find(({ language }) => language === "ts")?.text).toBe(
      read("examples/quick-start.ts"),
    );
  }
});

// ------------------------------------------------------------------------------------------------------- commands

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

describe.skipIf(!hasCurl)("where curl is installed:", () => {
  test.each(PAGES.filter((page) => read(page).includes("curl -s")))(
    "the commands of %s answer as it shows",
    async (page) => {
      const server = await startServer();
      const blocks = codeBlocks(read(page));
      let task = "";
      for (const [index, { language, text, line }] of blocks.entries()) {
        if (language !== "sh" || !text.includes("curl -s")) continue;
        const shown = blocks[index + 1];
        const run = () => {
          const script = `${text.replaceAll("http://127.0.0.1:7682", server.url)}\nprintf '\\n%s' "$TASK"`;
          const { stdout, stderr } = spawnSync("bash", ["--norc", "-euc", script], {
            stdio: ["ignore", "pipe", "pipe"],
            encoding: "utf8",
            env: { ...process.env, TASK: task },
          });
          expect(stderr, `${page}:${line}`).toBe("");
          return {
            answer: JSON.parse(stdout.slice(0, stdout.lastIndexOf("\n"))),
            task: stdout.slice(stdout.lastIndexOf("\n") + 1),
          };
        };
        let ran = run();
        if (shown?.language === "json") {
          const expected = JSON.parse(shown.text);
          // A task that was just submitted may still be on its way: looking again changes nothing.
          const isLook = !/ -d | -X /.test(text.trim().split("\n").at(-1) ?? "");
          await eventually(
            () => {
              if (isSameShape(expected, ran.answer)) return true;
              if (!isLook) throw new Error(`${page}:${line} answers ${JSON.stringify(ran.answer)}`);
              ran = run();
              return false;
            },
            `${page}:${line} to answer as shown, not ${JSON.stringify(ran.answer)}`,
          );
        }
        task = ran.task;
      }
    },
  );
});

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

test("docs/tasks.md has every field with what the schema says of it", () => {
  const fields = Object.entries(taskInput.shape).map(([name, { description }]) => [
    `\`${name}\``,
    description,
  ]);
  expect(tableRows(section(read("docs/tasks.md"), "fields"))).toEqual(fields);
});

test("the library knows exactly the fields of the schema", () => {
  const defaults = {
    now: 0,
    timeoutMs: 1_000,
    timeoutMaxMs: 1_000,
    retryPolicy: DEFAULT_RETRY_POLICY,
    hasLane: () => true,
    laneOf: () => undefined,
    maxQueuedOf: () => null,
  };
  let sentence = "";
  try {
    parseTaskInput({ zzzzzzzzzzzzzzzzzzzz: 1 }, defaults);
  } catch (error) {
    sentence = (error as Error).message;
  }
  const known = [...sentence.slice(sentence.indexOf("known are")).matchAll(/`(\w+)`/g)].map(
    ([, name]) => name,
  );
  expect(known.sort()).toEqual(Object.keys(taskInput.shape).sort());
});

/** `npx vitest run test/docs.test.ts -u` writes the table anew. */
test("docs/configuration.md has every option as the schema describes it", async () => {
  const rows = OPTIONS.map(({ path, variable, defaultValue, description }) => {
    const shown = typeof defaultValue === "string" ? defaultValue : JSON.stringify(defaultValue);
    return [
      `\`${path.join(".")}\``,
      shown === undefined ? "" : `\`${shown}\``,
      `\`${variable}\``,
      description,
    ];
  });
  const table = formatTable([["option", "default", "variable", ""], ...rows]);
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

test.each(["docs/configuration.md", "docs/executors.md"])(
  "the configurations that %s shows are right ones",
  (page) => {
    const shown = codeBlocks(read(page))
      .filter(({ language }) => language === "json")
      .map(({ text }) => JSON.parse(text))
      // What a command answers is no configuration.
      .filter((value) => value.taskId === undefined);
    expect(shown).not.toEqual([]);
    for (const value of shown) expect(check(configSchema, value)).toMatchObject({ ok: true });
  },
);

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

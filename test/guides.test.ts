import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, onTestFinished, test } from "vitest";
import { COMMANDS, type CommandEntry } from "../src/cli/commands.ts";
import { REASON_CODES } from "../src/model/explanation.ts";
import { codeBlocks, namesIn, section } from "./docs/markdown.ts";
import { Reader } from "./docs/reader.ts";
import { stepsOf } from "./docs/steps.ts";
import { createTestDatabase } from "./postgres/database.ts";

const ROOT = join(import.meta.dirname, "..");
const GUIDES = globSync("docs/guides/*.md", { cwd: ROOT }).sort();

/** A guide starts servers and programs, one after the other. */
const GUIDE_MS = 180_000;

function read(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

/** Programs that a guide needs and that a machine may not have. */
const missing = ["bash", "curl", "python3"].filter(
  (program) => spawnSync(program, ["--version"]).status !== 0,
);

const followed = ["README.md", ...GUIDES].filter((page) => stepsOf(codeBlocks(read(page))).length > 0);

test.skipIf(missing.length > 0).each(followed)(
  "%s can be followed from an empty folder to its result",
  { timeout: GUIDE_MS },
  async (page) => {
    const reader = await Reader.start(await databaseFor(read(page)));
    for (const step of stepsOf(codeBlocks(read(page)))) {
      await reader.follow(step).catch((error) => {
        throw new Error(`${page}: ${error.message}`);
      });
    }
  },
);

async function databaseFor(page: string): Promise<string | null> {
  if (!page.includes("postgres://")) return null;
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

/** Commands that pages mention without running them: in sentences, tables and blocks. */
const mentioned = [
  ...new Set(["README.md", "docs/cli.md", ...GUIDES].flatMap((page) => commandsIn(read(page)))),
];

test.each(mentioned)("`%s` is a command with these flags", async (text) => {
  // What follows `--` is another program's.
  const [name, ...words] = text
    .replace(/^rota /, "")
    .replace(/ -- .*$/, "")
    .split(" ");
  const entry = COMMANDS.find((known) => known.name === name);
  expect(entry, `rota ${name}`).toBeDefined();
  let command = await (entry as CommandEntry).load();
  for (const word of words) {
    command = command.commands.find((known) => known.name() === word) ?? command;
    if (!word.startsWith("--")) continue;
    // A group without a subcommand lists.
    const list = command.commands.find((known) => known.name() === "list");
    expect([command, ...(list === undefined ? [] : [list])].flatMap(flagsOf)).toContain(word);
  }
});

function flagsOf({ options }: Command): (string | undefined)[] {
  return options.map(({ long }) => long);
}

/** `rota COMMAND …` as far as words and flags go; what stands in quotes is a value. */
function commandsIn(page: string): string[] {
  const found = [...page.matchAll(/(?<=[`(]|^)(?:npm run -s )?rota (?:-- )?([a-z]+\b[^`\n|)]*)/gm)];
  return found
    .map(([, text = ""]) => text.replaceAll(/"[^"]*"|'[^']*'| [#>].*$/g, "").replaceAll(/\s+/g, " "))
    .map((text) => `rota ${text.trim()}`);
}

test("a block that no step of a guide uses is refused", () => {
  const page = (language: string) => codeBlocks(`Look:\n\n\`\`\`${language}\n{}\n\`\`\`\n`);
  expect(() => stepsOf(page("json"))).toThrow("line 3: no step uses this block of json");
  expect(() => stepsOf(page("python"))).toThrow("no step uses this block of python");
  expect(stepsOf(page(""))).toEqual([]);
});

test("docs/guides/troubleshooting.md has every reason why a task waits, and no other", () => {
  expect(namesIn(section(read("docs/guides/troubleshooting.md"), "reasons"))).toEqual([...REASON_CODES]);
});

test.each([
  ...["worker", "deploy", "trigger", "retry", "cron", "queue", "rate limit", "Docker", "systemd", "backup"],
  ...["upgrade", "monitoring", "Prometheus", "webhook", "timeout", "idempotency", "priority", "pause"],
])("the index of docs/guides/README.md has the search word %s", (word) => {
  const index = read("docs/guides/README.md").split("## How do I")[1] ?? "";
  const searched = index.split("\n").map((row) => row.split("|")[1] ?? "");
  expect(searched.some((cell) => cell.includes(word))).toBe(true);
});

test("docs/guides/README.md and docs/README.md list every guide", () => {
  for (const guide of GUIDES) {
    const name = guide.replace("docs/guides/", "");
    if (name === "README.md") continue;
    expect(read("docs/guides/README.md")).toContain(`](${name})`);
    expect(read("docs/README.md")).toContain(`](guides/${name})`);
  }
});

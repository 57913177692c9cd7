import { CommanderError } from "commander";
import { expect, test, vi } from "vitest";
import { ConnectionError } from "../client/index.ts";
import { type ErrorCode, RotaError } from "../model/errors.ts";
import { COMMANDS } from "./commands.ts";
import { createProgram } from "./program.ts";
import { exitCodeOf } from "./terminal/exit-code.ts";
import { UsageError } from "./terminal/usage-error.ts";

test.each(COMMANDS)("what the overview says of $name is what the command says of itself", async (entry) => {
  const command = await entry.load();
  expect([command.name(), command.description()]).toEqual([entry.name, entry.description]);
});

test("only the command that is called is loaded with its options", async () => {
  const program = await createProgram(["tasks"]);
  const optionsOf = (name: string) =>
    program.commands.find((command) => command.name() === name)?.options.length;
  expect(optionsOf("tasks")).toBeGreaterThan(5);
  expect(optionsOf("serve")).toBe(0);
  const help = await createProgram(["help", "cancel"]);
  expect(help.commands.find((command) => command.name() === "cancel")?.options.length).toBe(4);
});

test.each([
  [
    ["lanes", "put", "main", "--concurency", "3"],
    "unknown option '--concurency'\n(Did you mean --concurrency?)",
  ],
  [["lanes", "put", "main"], "required option '--concurrency <number>' not specified"],
  [["worker", "--agnet", "x", "cat"], "unknown option '--agnet'\n(Did you mean --agent?)"],
])("%j is refused for what is wrong with it", async (args, reason) => {
  const stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const program = await createProgram(args);
  await expect(program.parseAsync(args, { from: "user" })).rejects.toThrow(CommanderError);
  expect(String(stderr.mock.calls[0]?.[0])).toBe(`error: ${reason}\n`);
});

async function helpOf(args: readonly string[]): Promise<string> {
  const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const program = await createProgram(args);
  await expect(program.parseAsync([...args], { from: "user" })).rejects.toThrow(CommanderError);
  const help = written.mock.calls.map(([text]) => String(text)).join("");
  written.mockRestore();
  return help;
}

test("the help has examples, and shows defaults and itself in one way", async () => {
  const help = await helpOf(["--help"]);
  expect(help).toMatch(/\nMore:\n {2}help \[command\] +show the help of a command\n/);
  expect(help).toMatch(/\nExamples:\n {2}rota demo\n/);
  expect(await helpOf(["worker", "--help"])).toMatch(/how many tasks run at once \(default: 1\)/);
  expect(await helpOf(["keys", "create", "--help"])).toMatch(/separated by\s+commas/);
  const lanes = await helpOf(["lanes", "--help"]);
  expect(lanes).toMatch(/help \[command\] +show the help of a command\n/);
  for (const text of [help, lanes]) expect(text).toMatch(/-h, --help +show this help\n/);
});

test.each<[ErrorCode, number]>([
  ["queue_full", 1],
  ["invalid_field", 2],
  ["unauthorized", 2],
  ["conflict", 2],
  ["not_found", 3],
  ["unknown_worker", 3],
  ["rate_limited", 4],
  ["internal_error", 4],
  ["draining", 4],
  ["scheduler_disabled", 4],
  ["storage_unavailable", 4],
])("an error %s ends a command with %i", (code, exitCode) => {
  expect(exitCodeOf(new RotaError(code, "…"))).toBe(exitCode);
});

test("other errors end a command with codes of their own", () => {
  expect(exitCodeOf(new UsageError("…"))).toBe(2);
  expect(exitCodeOf(new ConnectionError("…", { url: "", mayHaveHappened: false }))).toBe(4);
  expect(exitCodeOf(new TypeError("a fault of ours"))).toBe(70);
});

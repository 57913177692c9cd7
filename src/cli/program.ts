import { Command } from "commander";
import { nearestName } from "../model/text/nearest-name.ts";
import { VERSION } from "../version.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT_CODES } from "./terminal/exit-code.ts";

/** With more wrong letters, the word is rather the id of something to show. */
const SLIPS_MAX = 2;

const EXAMPLES = `
Examples:
  rota demo
  rota submit --message "hello" --wait
  rota submit --agent research --instruction "Summarise the news"
  rota task tsk_019a8f6e5b0c --why
  rota schedule "every monday at 09:00: summarise the week" --agent research
"rota COMMAND --help" lists the options of a command.
`;

/** The command line for these arguments. Only the command that they name is loaded with its options. */
export async function createProgram(args: readonly string[]): Promise<Command> {
  const named = args[0] === "help" ? args[1] : args[0];
  const program = new Command("rota")
    .description("The scheduler for AI agents: decides which agent works on what, and when.")
    .version(VERSION, "-V, --version", "show the version")
    // Flags after the name of a command belong to that command: `rota tasks` and `rota tasks cancel` share some names.
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => `${command.name()} ${usageOf(command.name())}`.trim() })
    .commandsGroup("More:")
    .addHelpText("after", `${EXAMPLES}\nExit codes:\n${exitCodeLines()}`);
  for (const { name, description, group, load } of COMMANDS) {
    const command = name === named ? await load() : new Command(name).description(description);
    program.addCommand(command.helpGroup(group));
  }
  prepare(program, "rota");
  return program;
}

/** Usage errors are thrown to the caller instead of ending the process, and name the help of the command. */
function prepare(command: Command, path: string): void {
  command
    .exitOverride()
    .helpOption("-h, --help", "show this help")
    .showHelpAfterError(`Run "${path} --help" to see the commands and options.`);
  if (command.commands.length > 0) command.helpCommand("help [command]", "show the help of a command");
  for (const option of command.options) {
    // Without quotes, as the defaults of fields are shown.
    if (typeof option.defaultValue === "string") option.defaultValueDescription ??= option.defaultValue;
  }
  requireOptionsLast(command);
  for (const child of command.commands) {
    prepare(child, `${path} ${child.name()}`);
    // `rota lanes` is `rota lanes list`: a mistake in it is one of the command that was written.
    if (child.name() === "list") sayUnknownCommand(child, { group: command, path });
  }
  const isGroupWithList = command.commands.some((child) => child.name() === "list");
  if (command.commands.length > 0 && !isGroupWithList) sayUnknownCommand(command, { group: command, path });
}

/**
 * Commander looks for missing options before unknown ones, and would report a misspelled option that is required as missing.
 * Here the unknown one is reported, with the name it resembles.
 */
function requireOptionsLast(command: Command): void {
  const required = command.options.filter(({ mandatory }) => mandatory);
  for (const option of required) option.makeOptionMandatory(false);
  command.hook("preAction", () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) command.error(`error: required option '${missing.flags}' not specified`);
  });
}

/** A word after `rota lanes` that is no command of it is reported as such, and not as an argument of `list`. */
function sayUnknownCommand(
  command: Command,
  { group, path }: { readonly group: Command; readonly path: string },
): void {
  const names = group.commands.map((child) => child.name()).filter((name) => name !== "help");
  const show = group.commands.some((child) => [child.name(), ...child.aliases()].includes("show"))
    ? `${path} show`
    : path.replace(/^rota tasks$/, "rota task");
  command.configureOutput({
    outputError: (text, write) => {
      const [, word] = /^error: too many arguments for .* got \d+: ([^,\n]*?)[.,\n]/.exec(text) ?? [];
      if (word === undefined) return write(text);
      const meant = nearestName(word, names, SLIPS_MAX);
      const known = meant === undefined ? `it has ${names.join(", ")}` : `did you mean ${meant}?`;
      const hint = show === path ? "" : `\nTo show one: ${show} ${word}`;
      write(`error: "${path}" has no command ${word}: ${known}${hint}\n`);
    },
  });
  command.showHelpAfterError(`Run "${path} --help" to see the commands and options.`);
}

function usageOf(name: string): string {
  return COMMANDS.find((entry) => entry.name === name)?.usage ?? "[command]";
}

function exitCodeLines(): string {
  return Object.entries(EXIT_CODES)
    .map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`)
    .join("\n");
}

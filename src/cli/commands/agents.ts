import { Command } from "commander";
import type { AgentChanges } from "../../interface/agents.ts";
import { AGENT_FIELDS } from "../../model/input/agent-schema.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { agentSheet, agentsTable } from "../views/agents-table.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { forEachId } from "./each-id.ts";

interface AgentFlags extends ServerFlags {
  readonly unset?: readonly string[];
}

/** `rota agents`: lists, creates, changes and deletes agents. */
export function agentsCommand(): Command {
  return new Command("agents")
    .description("List agents, or show, create, change and delete them.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(getCommand())
    .addCommand(createCommand())
    .addCommand(updateCommand())
    .addCommand(deleteCommand());
}

function listCommand(): Command {
  const command = new Command("list").description("List agents, by their ids.");
  return withServerOptions(withPageOptions(command)).action(async (flags: PageFlags) => {
    const { agents } = openClient(flags);
    await printPages(flags, {
      noun: "agents",
      read: (position) => agents.list(position),
      cursor: ({ nextCursor }) => nextCursor,
      lines: (page) => agentsTable(page.agents, { width: lineWidth() }),
    });
  });
}

function getCommand(): Command {
  const command = new Command("show")
    .alias("get")
    .description("Show one agent.")
    .argument("<id>", "the agent's id");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) =>
    show(await openClient(flags).agents.get(id), flags),
  );
}

function createCommand(): Command {
  const command = new Command("create").description("Create an agent.").argument("<id>", "the agent's id");
  return withServerOptions(withInputOptions(command, AGENT_FIELDS))
    .addHelpText("after", EXAMPLES)
    .action(async (id: string, flags: AgentFlags) =>
      show(
        await openClient(flags)
          .agents.create({ id, ...settings(flags) })
          .catch(throwNamingFlags),
        flags,
      ),
    );
}

const EXAMPLES = `
Examples:
  rota agents create research --executor '{"type": "http", "url": "https://example.com/agent"}' --max-inflight 2
  rota agents create py --executor '{"type": "worker"}'`;

function updateCommand(): Command {
  const command = new Command("update")
    .description("Change an agent; what is not named stays.")
    .argument("<id>", "the agent's id")
    .option("--unset <fields...>", `take away: ${Object.keys(AGENT_FIELDS).join(", ")}`);
  return withServerOptions(withInputOptions(command, AGENT_FIELDS, { isChange: true })).action(
    async (id: string, flags: AgentFlags) => {
      const unset = Object.fromEntries((flags.unset ?? []).map((field) => [field, null]));
      const changes: AgentChanges = { ...unset, ...settings(flags) };
      show(await openClient(flags).agents.update(id, changes).catch(throwNamingFlags), flags);
    },
  );
}

function deleteCommand(): Command {
  const command = new Command("delete")
    .description("Delete agents; their tasks stay.")
    .argument("<id...>", "ids of agents");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { agents } = openClient(flags);
    await forEachId(ids, flags, {
      act: async (id) => ({ id, ...(await agents.delete(id)) }),
      say: ({ id }) => print(`${id} deleted`),
    });
  });
}

function throwNamingFlags(error: unknown): never {
  throw namingFlags(error, flagsOfFields(AGENT_FIELDS));
}

function settings(flags: AgentFlags): Record<string, unknown> {
  return inputOfFlags(AGENT_FIELDS, flags, Date.now());
}

function show(agent: Parameters<typeof agentSheet>[0], { json }: ServerFlags): void {
  if (json) printJson(agent);
  else for (const line of agentSheet(agent)) print(line);
}

import { Command } from "commander";
import type { AgentChanges, AgentInput } from "../../interface/agents.ts";
import { jsonFlag, numberFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { agentSheet, agentsTable } from "../views/agents-table.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { forEachId } from "./each-id.ts";

interface AgentFlags extends ServerFlags {
  readonly executor?: string;
  readonly lane?: string;
  readonly maxInflight?: string;
  readonly maxQueued?: string;
  readonly contextWindow?: string;
  readonly writs?: boolean;
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
  const command = new Command("get")
    .alias("show")
    .description("Show one agent.")
    .argument("<id>", "the agent's id");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) =>
    show(await openClient(flags).agents.get(id), flags),
  );
}

function createCommand(): Command {
  const command = new Command("create").description("Create an agent.").argument("<id>", "the agent's id");
  return withServerOptions(withAgentOptions(command)).action(async (id: string, flags: AgentFlags) =>
    show(await openClient(flags).agents.create({ id, ...settings(flags) } as AgentInput), flags),
  );
}

function updateCommand(): Command {
  const command = new Command("update")
    .description("Change an agent; what is not named stays.")
    .argument("<id>", "the agent's id")
    .option("--unset <fields...>", "take away: executor, lane, maxInflight, maxQueued, contextWindow, writs");
  return withServerOptions(withAgentOptions(command)).action(async (id: string, flags: AgentFlags) => {
    const unset = Object.fromEntries((flags.unset ?? []).map((field) => [field, null]));
    const changes: AgentChanges = { ...unset, ...settings(flags) };
    show(await openClient(flags).agents.update(id, changes), flags);
  });
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

function withAgentOptions(command: Command): Command {
  return command
    .option("--executor <json>", `what does its work, like '{"type": "http", "url": "https://…"}'`)
    .option("--lane <name>", "where its tasks run when they do not say")
    .option("--max-inflight <number>", "how many of its tasks run at once")
    .option("--max-queued <number>", "how many of its tasks may wait")
    .option("--context-window <tokens>", "how many tokens its model takes in at most")
    .option("--writs", "carry out /schedule lines in its answers");
}

function settings(flags: AgentFlags): Record<string, unknown> {
  const { executor, lane, maxInflight, maxQueued, contextWindow, writs } = flags;
  return given({
    executor: executor === undefined ? undefined : jsonFlag("--executor", executor),
    lane,
    maxInflight: maxInflight === undefined ? undefined : numberFlag(maxInflight),
    maxQueued: maxQueued === undefined ? undefined : numberFlag(maxQueued),
    contextWindow: contextWindow === undefined ? undefined : numberFlag(contextWindow),
    writs,
  });
}

function show(agent: Parameters<typeof agentSheet>[0], { json }: ServerFlags): void {
  if (json) printJson(agent);
  else for (const line of agentSheet(agent)) print(line);
}

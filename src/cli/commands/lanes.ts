import { Command } from "commander";
import type { LaneInput } from "../../interface/lanes.ts";
import { LANE } from "../../model/input/lane-input.ts";
import { inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { lanesTable } from "../views/lanes-table.ts";

/** `rota lanes`: how many tasks of each lane run at once. */
export function lanesCommand(): Command {
  return new Command("lanes")
    .description("List lanes, set the concurrency of one, or cancel its waiting tasks.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(putCommand())
    .addCommand(clearCommand());
}

function listCommand(): Command {
  const command = new Command("list").description("List all lanes, with how much runs and waits in each.");
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const list = await openClient(flags).lanes.list();
    if (flags.json) printJson(list);
    else for (const line of lanesTable(list.lanes, { width: lineWidth() })) print(line);
  });
}

function putCommand(): Command {
  const command = new Command("put")
    .description("Set the concurrency of a lane on all nodes; creates the lane if there is none.")
    .argument("<name>", "the lane's name");
  const withOptions = withInputOptions(command, LANE.fields);
  return withServerOptions(withOptions).action(async (name: string, flags: ServerFlags) => {
    const input = inputOfFlags(LANE.fields, flags, Date.now()) as LaneInput;
    const lane = await openClient(flags).lanes.put(name, input);
    if (flags.json) printJson(lane);
    else for (const line of lanesTable([lane], { width: lineWidth() })) print(line);
  });
}

function clearCommand(): Command {
  const command = new Command("clear")
    .description("Cancel all waiting tasks of a lane; running tasks continue.")
    .argument("<name>", "the lane's name");
  return withServerOptions(command).action(async (name: string, flags: ServerFlags) => {
    const cleared = await openClient(flags).lanes.clear(name);
    if (flags.json) printJson(cleared);
    else print(`${cleared.cancelled} cancelled`);
  });
}

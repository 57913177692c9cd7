import { Command } from "commander";
import type { RotaClient } from "../../client/index.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print } from "../terminal/print.ts";
import { nextText, zoneNote } from "../views/schedule-text.ts";
import { forEachId } from "./each-id.ts";

/** `rota schedules pause ID…` */
export function pauseCommand(): Command {
  return orderCommand("pause", "Pause schedules: they do not fire until they are resumed.", {
    act: async ({ schedules }, id) => ({ scheduled_task: await schedules.update(id, { status: "paused" }) }),
    say: ({ scheduled_task: { id, status } }) => `#${id} ${status}`,
  });
}

/** `rota schedules resume ID…` */
export function resumeCommand(): Command {
  return orderCommand("resume", "Resume schedules that are paused.", {
    act: async ({ schedules }, id) => ({ scheduled_task: await schedules.update(id, { status: "active" }) }),
    say: ({ scheduled_task: schedule }) => {
      const next = nextText(schedule, Date.now());
      return `#${schedule.id} ${schedule.status}${next === "" ? "" : `, next ${next}${zoneNote(schedule)}`}`;
    },
  });
}

/** `rota schedules delete ID…` */
export function deleteCommand(): Command {
  return orderCommand(
    "delete",
    "Delete schedules and their runs; what these have not finished is cancelled.",
    {
      act: async ({ schedules }, id) => ({ id, ...(await schedules.delete(id)) }),
      say: ({ id }) => `#${id} deleted`,
    },
  ).alias("cancel");
}

interface Order<Answer> {
  readonly act: (rota: RotaClient, id: number) => Promise<Answer>;
  readonly say: (answer: Answer) => string;
}

/** The same with each of several schedules. */
function orderCommand<Answer>(name: string, description: string, { act, say }: Order<Answer>): Command {
  const command = new Command(name).description(description).argument("<id...>", "numbers of schedules");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const rota = openClient(flags);
    await forEachId(ids, flags, {
      act: async (id) => act(rota, serialId("schedule", id)),
      say: (answer) => print(say(answer)),
    });
  });
}

import { Command } from "commander";
import type { SchedulePreviewInput } from "../../client/index.ts";
import { momentFlag, numberFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";
import { listingForms } from "../views/listing-forms.ts";
import { previewLines } from "../views/schedule-preview.ts";

interface PreviewFlags extends ServerFlags {
  readonly tz?: string;
  readonly from?: string;
  readonly count?: string;
}

/** `rota schedules preview WHEN`: shows the due times of a phrase. */
export function previewCommand(): Command {
  const command = new Command("preview")
    .description("Show when a schedule would be due, without storing it.")
    .argument("<schedule...>", 'a phrase like "every monday at 09:00", or a cron expression')
    .option("--tz <zone>", "the time zone, like Europe/Berlin (default: the server's)")
    .option(
      "--from <time>",
      "as if it was made then: 2030-01-31T09:00:00Z, or a span from now: 2d (default: now)",
    )
    .option("--count <number>", "how many due times to list, 1000 at most (default: 5)");
  return withServerOptions(command).action(showPreview);
}

async function showPreview(words: readonly string[], flags: PreviewFlags): Promise<void> {
  const { tz, from, count, json } = flags;
  const input = given({
    schedule: words.join(" "),
    tz,
    from: from === undefined ? undefined : momentFlag(from, Date.now()),
    count: count === undefined ? undefined : numberFlag(count),
  });
  const preview = await openClient(flags)
    .schedules.preview(input as SchedulePreviewInput)
    .catch((error) => {
      throw json ? error : listingForms(error);
    });
  if (json) printJson(preview);
  else for (const line of previewLines(preview, Date.now())) print(line);
}

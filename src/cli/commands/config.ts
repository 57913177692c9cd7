import { Command } from "commander";
import { describeConfig } from "../../config/described-config.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { rotaOptions } from "../../config/rota-options.ts";
import { RotaError } from "../../model/errors.ts";
import { type ConfigFlags, configSource, withConfigFlags } from "../flags/config-flags.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson, printNotice } from "../terminal/print.ts";
import { tableLines } from "../views/table.ts";

/** `rota config`: the configuration that a server would use. It reads files and talks to no server. */
export function configCommand(): Command {
  return new Command("config")
    .description("Check or show the configuration of this directory.")
    .addCommand(
      withConfigFlags(new Command("check").description("Report configuration errors.")).action(check),
    )
    .addCommand(
      withConfigFlags(new Command("show").description("List every option with its value and its source."))
        .option("--json", "print JSON")
        .action(show),
    );
}

async function check(flags: ConfigFlags): Promise<void> {
  const { checkOptions } = await import("../../rota.ts");
  const loaded = load(flags, (read) => checkOptions(rotaOptions(read)));
  if (loaded === null) return;
  const { file } = loaded;
  print(`The configuration is valid (${file.found ? file.name : "there is no file, and none is needed"}).`);
}

function show({ json = false, ...flags }: ConfigFlags & { readonly json?: boolean }): void {
  const loaded = load(flags);
  if (loaded === null) return;
  const options = describeConfig(loaded);
  if (json) {
    printJson({ options, count: options.length });
    return;
  }
  const rows = options.map(({ option, value, from }) => [option, oneLine(shownValue(value)), oneLine(from)]);
  const columns = [{ title: "OPTION" }, { title: "VALUE", shrinksTo: 20 }, { title: "FROM", shrinksTo: 10 }];
  for (const line of tableLines(columns, rows, { width: lineWidth() })) print(line);
}

function shownValue(value: unknown): string {
  if (value === null) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Null if the configuration cannot be used or `check` refuses it. The reason has then been printed. */
function load(flags: ConfigFlags, check: (loaded: LoadedConfig) => void = () => {}): LoadedConfig | null {
  try {
    const loaded = configSource(flags).load();
    for (const hint of loaded.hints) printNotice(hint);
    check(loaded);
    return loaded;
  } catch (error) {
    if (!(error instanceof RotaError)) throw error;
    printNotice(error.message);
    process.exitCode = 1;
    return null;
  }
}

import { type ParseArgsConfig, parseArgs } from "node:util";

/** Like `parseArgs`. Its errors end with the usage, and so does that for `--help`. */
export function parseOptions<Config extends ParseArgsConfig>(
  config: Config,
  usage: string,
): ReturnType<typeof parseArgs<Config>> {
  if (config.args?.includes("--help")) throw new Error(usage);
  try {
    return parseArgs(config);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${usage}`);
  }
}

/** What the arguments of this program ask for. If they are wrong, the program ends with the error alone. */
export function readOrders<Orders>(parse: (args: readonly string[]) => Orders): Orders {
  try {
    return parse(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
}

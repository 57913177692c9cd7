import { parseOptions } from "../support/program-options.ts";
import type { StorageName } from "./plan.ts";

const STORAGES: readonly StorageName[] = ["sqlite", "postgres"];
const MINUTES = 4;

export interface Orders {
  readonly seed: number;
  readonly minutes: number;
  /** They take turns. */
  readonly storages: readonly StorageName[];
}

const USAGE = `npm run chaos [-- [--seed N] [--minutes N] [--storage ${STORAGES.join("|")}]]`;

export function parseCommandLine(args: readonly string[]): Orders {
  const options = {
    seed: { type: "string" },
    minutes: { type: "string", default: String(MINUTES) },
    storage: { type: "string" },
  } as const;
  const { values, positionals } = parseOptions({ args: [...args], allowPositionals: true, options }, USAGE);
  // Without the "--" before them, npm takes the names of options for its own and passes on only their values.
  if (positionals.length > 0) throw new Error(`options go behind a \`--\`\n${USAGE}`);
  // Another seed each time, and printed: runs of several nights cover more than one run.
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error(`--seed must be a number from 0\n${USAGE}`);
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error(`--minutes must be a number above 0\n${USAGE}`);
  const storages = STORAGES.filter((name) => values.storage === undefined || values.storage === name);
  if (storages.length === 0) throw new Error(`--storage must be ${STORAGES.join(" or ")}\n${USAGE}`);
  return { seed, minutes, storages };
}

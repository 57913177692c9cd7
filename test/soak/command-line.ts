import { parseOptions } from "../support/program-options.ts";

export const STORAGES = ["sqlite", "postgres"] as const;
export type StorageName = (typeof STORAGES)[number];

const MINUTES = 20;
/** Less leaves too few looks in each third to say anything, once the server has warmed up. */
const MINUTES_MIN: Readonly<Record<StorageName, number>> = { sqlite: 1, postgres: 4 };

export interface Orders {
  readonly minutes: number;
  readonly storage: StorageName;
  /** Where to write every look, for programs; null: nowhere. */
  readonly jsonFile: string | null;
}

const USAGE = `npm run soak [-- [--minutes N] [--storage ${STORAGES.join("|")}] [--json FILE]]`;

export function parseCommandLine(args: readonly string[]): Orders {
  const options = {
    minutes: { type: "string" },
    storage: { type: "string", default: "sqlite" },
    json: { type: "string" },
  } as const;
  // Without the "--" before it, npm takes "--minutes" for its own and passes on only the number.
  const { values, positionals } = parseOptions({ args: [...args], allowPositionals: true, options }, USAGE);
  const storage = STORAGES.find((name) => name === values.storage);
  if (storage === undefined) throw new Error(`--storage must be ${STORAGES.join(" or ")}\n${USAGE}`);
  const minutes = Number(values.minutes ?? positionals[0] ?? MINUTES);
  const least = MINUTES_MIN[storage];
  if (!(minutes >= least)) throw new Error(`--minutes must be a number from ${least}\n${USAGE}`);
  return { minutes, storage, jsonFile: values.json ?? null };
}

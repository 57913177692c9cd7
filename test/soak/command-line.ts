import { parseArgs } from "node:util";

export const STORAGES = ["sqlite", "postgres"] as const;
export type StorageName = (typeof STORAGES)[number];

const MINUTES = 20;
/** Less leaves too few looks in each third to say anything. */
const MINUTES_MIN = 1;

export interface Orders {
  readonly minutes: number;
  readonly storage: StorageName;
  /** Where to write every look, for programs; null: nowhere. */
  readonly jsonFile: string | null;
}

const USAGE = `npm run soak [-- [--minutes N] [--storage ${STORAGES.join("|")}] [--json FILE]]`;

export function parseCommandLine(args: readonly string[]): Orders {
  const { values, positionals } = parseArgs({
    args: [...args],
    // Without the "--" before it, npm keeps "--minutes" to itself and hands on the number alone.
    allowPositionals: true,
    options: {
      minutes: { type: "string" },
      storage: { type: "string", default: "sqlite" },
      json: { type: "string" },
    },
  });
  const minutes = Number(values.minutes ?? positionals[0] ?? MINUTES);
  if (!(minutes >= MINUTES_MIN)) throw new Error(`--minutes must be a number from ${MINUTES_MIN}\n${USAGE}`);
  const storage = STORAGES.find((name) => name === values.storage);
  if (storage === undefined) throw new Error(`--storage must be ${STORAGES.join(" or ")}\n${USAGE}`);
  return { minutes, storage, jsonFile: values.json ?? null };
}

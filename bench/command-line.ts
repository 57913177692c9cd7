import { parseArgs } from "node:util";
import { FULL, QUICK, type Sizes } from "./job.ts";
import { PARTS, type Part, USUAL_PARTS } from "./jobs/index.ts";

const TURNS = 3;

export interface Orders {
  readonly parts: readonly Part[];
  readonly sizes: Sizes;
  readonly turns: number;
  readonly postgres: boolean;
  /** Where to write everything for programs; null: nowhere. */
  readonly jsonFile: string | null;
}

const USAGE = `npm run bench [-- [${PARTS.join("|")}]… [--quick] [--turns N] [--without-postgres] [--json FILE]]`;

export function parseCommandLine(args: readonly string[]): Orders {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      turns: { type: "string", default: String(TURNS) },
      "without-postgres": { type: "boolean", default: false },
      json: { type: "string" },
    },
  });
  const unknown = positionals.find((name) => !PARTS.includes(name as Part));
  if (unknown !== undefined) throw new Error(`there is no part "${unknown}"\n${USAGE}`);
  const turns = Number(values.turns);
  if (!Number.isInteger(turns) || turns < 1) throw new Error(`--turns must be a number from 1\n${USAGE}`);
  return {
    parts: positionals.length === 0 ? USUAL_PARTS : (positionals as Part[]),
    sizes: values.quick ? QUICK : FULL,
    turns,
    postgres: !values["without-postgres"],
    jsonFile: values.json ?? null,
  };
}

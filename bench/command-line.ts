import { parseOptions } from "../test/support/program-options.ts";
import { FULL, type NeighbourOrders, QUICK, type Sizes } from "./job.ts";
import { PARTS, type Part, USUAL_PARTS } from "./jobs/index.ts";
import { ATTACKS, type AttackName } from "./neighbours/attack-names.ts";

const TURNS = 3;

const STORAGES = { sqlite: ["sqlite"], postgres: ["postgres"], both: ["sqlite", "postgres"] } as const;
type StorageName = (typeof STORAGES)["both"][number];

export interface Orders {
  readonly parts: readonly Part[];
  readonly sizes: Sizes;
  readonly turns: number;
  readonly postgres: boolean;
  /** Of the parts `neighbours` and `lists`, which take minutes for each. */
  readonly storages: readonly StorageName[];
  readonly neighbours: NeighbourOrders;
  /** Where to write everything for programs; null: nowhere. */
  readonly jsonFile: string | null;
}

const USAGE = `npm run bench [-- [${PARTS.join("|")}]… [--quick] [--turns N] [--without-postgres] [--json FILE]]
of lists and neighbours: [--storage ${Object.keys(STORAGES).join("|")}]
of neighbours: [--tasks N] [--attack ${ATTACKS.join("|")}]…`;

const OPTIONS = {
  quick: { type: "boolean", default: false },
  turns: { type: "string", default: String(TURNS) },
  "without-postgres": { type: "boolean", default: false },
  storage: { type: "string", default: "sqlite" },
  tasks: { type: "string" },
  attack: { type: "string", multiple: true, default: [...ATTACKS] as string[] },
  json: { type: "string" },
} as const;

/** Throws an error whose message ends with the usage, also for `--help`. */
export function parseCommandLine(args: readonly string[]): Orders {
  const { values, positionals } = parseOptions(
    { args: [...args], allowPositionals: true, options: OPTIONS },
    USAGE,
  );
  const unknown = positionals.find((name) => !PARTS.includes(name as Part));
  if (unknown !== undefined) throw new Error(`there is no part "${unknown}"\n${USAGE}`);
  const noAttack = values.attack.find((name) => !ATTACKS.includes(name as AttackName));
  if (noAttack !== undefined) throw new Error(`there is no attack "${noAttack}"\n${USAGE}`);
  if (!Object.hasOwn(STORAGES, values.storage))
    throw new Error(`--storage must be ${Object.keys(STORAGES).join(", ")}\n${USAGE}`);
  const tasks = values.tasks === undefined ? null : numberFrom1("--tasks", values.tasks);
  return {
    parts: positionals.length === 0 ? USUAL_PARTS : (positionals as Part[]),
    sizes: values.quick ? QUICK : FULL,
    turns: numberFrom1("--turns", values.turns),
    postgres: !values["without-postgres"],
    storages: STORAGES[values.storage as keyof typeof STORAGES],
    neighbours: {
      attacks: ATTACKS.filter((name) => values.attack.includes(name)),
      sizes: tasks === null ? {} : { storedTasks: tasks },
    },
    jsonFile: values.json ?? null,
  };
}

function numberFrom1(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag} must be a number from 1\n${USAGE}`);
  return value;
}

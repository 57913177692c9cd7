import { z } from "zod";
import { preview, quoted } from "../model/input/field-checks.ts";
import { nearestName } from "../model/text/nearest-name.ts";

/** What zod passes to an error function: the path, and the value there. */
interface Fault {
  readonly code?: string;
  readonly path?: PropertyKey[] | undefined;
  readonly input?: unknown;
  readonly keys?: string[];
}

/** The sentence for a value that is not what it must be. */
export function must(what: string): (fault: Fault) => string {
  return ({ path, input }) =>
    input === undefined
      ? `\`${dotted(path)}\` is missing: it must ${what}`
      : `\`${dotted(path)}\` must ${what}, not ${quoted(input)}`;
}

export function dotted(path: readonly PropertyKey[] = []): string {
  return path.map((key) => preview(String(key))).join(".");
}

/** An object of which every key is known; an unknown one is refused with the name that was probably meant. */
export function section<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  what = "be an object",
): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (fault) => (fault.code === "unrecognized_keys" ? unknownKeys(fault, known) : must(what)(fault)),
  });
}

/** zod makes one fault of all unknown keys; `check` splits them again. */
function unknownKeys({ keys = [], path = [] }: Fault, known: readonly string[]): string {
  return keys.map((key) => unknownOption(key, known, path)).join("\n");
}

/** The sentence for an option that does not exist, with the one that was probably meant. */
export function unknownOption(
  key: string,
  known: readonly string[],
  path: readonly PropertyKey[] = [],
): string {
  const nearest = nearestName(key, known);
  const hint =
    nearest === undefined
      ? `known are ${known.join(", ")}`
      : `did you mean \`${dotted([...path, nearest])}\`?`;
  return `unknown option \`${dotted([...path, key])}\`: ${hint}`;
}

export interface Range {
  readonly min: number;
  readonly max: number;
  readonly integer?: boolean;
  readonly unit?: string;
}

export function numberIn({ min, max, integer = true, unit }: Range): z.ZodNumber {
  const what = `${integer ? "an integer" : "a number"}${unit === undefined ? "" : ` of ${unit}`}`;
  const error = must(`be ${what} from ${min} to ${max}`);
  const number = integer ? z.int({ error }) : z.number({ error });
  return number.min(min, { error }).max(max, { error });
}

export function yesOrNo(): z.ZodBoolean {
  return z.boolean({ error: must("be true or false") });
}

export function oneOf<const Choices extends readonly [string, ...string[]]>(choices: Choices) {
  return z.enum(choices, { error: must(`be one of ${choices.join(", ")}`) });
}

/** One option of the configuration. */
export interface Option {
  /** Below its section: `agents.research.lane` is `research.lane` of `agents`. Empty: the section is the option. */
  readonly path: string;
  readonly text: string;
  /** The server has put a mask in place of a secret in it. */
  readonly isHidden: boolean;
}

const MASK = "…";

/** All options of a section, in the order of the configuration. Lists of plain values are one option. */
export function optionsOf(value: unknown, path = ""): readonly Option[] {
  if (typeof value === "object" && value !== null && !isPlainList(value)) {
    const entries = Object.entries(value);
    if (entries.length > 0) {
      return entries.flatMap(([name, inner]) => optionsOf(inner, path === "" ? name : `${path}.${name}`));
    }
  }
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return [{ path, text, isHidden: text.includes(MASK) }];
}

function isPlainList(value: object): boolean {
  return Array.isArray(value) && value.every((item) => typeof item !== "object");
}

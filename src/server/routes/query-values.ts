/** In a query numbers come as text; one that is none stays a text, and the library says what it must be. */
export function toNumber(text: unknown): unknown {
  return typeof text === "string" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** Numbers of the fields of a query that are numbers. */
export function withNumbers<Query extends object>(
  query: Query,
  ...names: (keyof Query)[]
): { [Name in keyof Query]?: unknown } {
  const numbers = names.filter((name) => query[name] !== undefined);
  return { ...query, ...Object.fromEntries(numbers.map((name) => [name, toNumber(query[name])])) };
}

/** `true` and `false` likewise come as text. */
export function toBoolean(text: unknown): unknown {
  return text === "true" || text === "false" ? text === "true" : text;
}

/** The number of a schedule or a run in a path; 0, which none has, for what is no number. */
export function toSerialId(text: string): number {
  return /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
}

/** Values written in one step: about a millisecond. */
const STEP_VALUES = 1_000;

/**
 * JSON text that does not depend on the order of keys in objects. It is written directly: copying an object of a hundred
 * thousand keys in order first would take five times as long.
 */
export function canonicalJson(value: unknown): string {
  const steps = canonicalSteps(value);
  for (;;) {
    const { done, value: text } = steps.next();
    if (done) return text;
  }
}

/** The same in steps, for a value that may be large. */
export function canonicalSteps(value: unknown): Generator<void, string, void> {
  return write(value, { left: STEP_VALUES });
}

function* write(value: unknown, step: { left: number }): Generator<void, string, void> {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const isArray = Array.isArray(value);
  const fields = value as Readonly<Record<string, unknown>>;
  const texts: string[] = [];
  for (const key of isArray ? value.keys() : inOrder(Object.keys(fields))) {
    const inner = fields[key];
    if (inner === undefined && !isArray) continue;
    const isNested = typeof inner === "object" && inner !== null;
    const text = isNested ? yield* write(inner, step) : (JSON.stringify(inner) ?? "null");
    texts.push(isArray ? text : `${JSON.stringify(key)}:${text}`);
    step.left -= 1;
    if (step.left > 0) continue;
    step.left = STEP_VALUES;
    yield;
  }
  return isArray ? `[${texts.join(",")}]` : `{${texts.join(",")}}`;
}

/** Integer keys first, by size, as in every object; the others by their code units. */
function inOrder(keys: readonly string[]): string[] {
  const firstOther = keys.findIndex((key) => !isIndex(key));
  return firstOther === -1 ? [...keys] : [...keys.slice(0, firstOther), ...keys.slice(firstOther).sort()];
}

function isIndex(key: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1;
}

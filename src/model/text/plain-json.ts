/** The most values and characters that are copied this way: far below every limit of a task. */
const SIZE_MAX = 10_000;
const DEPTH_MAX = 50;

const NOT_PLAIN = Symbol("not plain");

/**
 * Copies a value that is plain JSON, as most input is. The copy is the same as `JSON.parse(JSON.stringify(value))`, in a
 * quarter of the time. Undefined: the value is larger, or not plain JSON, and has to be converted by way of its text.
 */
export function copyPlainJson(value: unknown): unknown {
  const copy = copyValue(value, DEPTH_MAX, { left: SIZE_MAX });
  return copy === NOT_PLAIN ? undefined : copy;
}

function copyValue(value: unknown, depth: number, size: { left: number }): unknown {
  size.left -= typeof value === "string" ? value.length + 1 : 1;
  if (size.left < 0) return NOT_PLAIN;
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      // JSON has neither NaN nor infinity, and no negative zero.
      return Number.isFinite(value) ? value + 0 : NOT_PLAIN;
    case "object":
      if (value === null) return null;
      if (depth === 0 || "toJSON" in value) return NOT_PLAIN;
      return Array.isArray(value) ? copyArray(value, depth, size) : copyObject(value, depth, size);
    default:
      return NOT_PLAIN;
  }
}

function copyArray(array: readonly unknown[], depth: number, size: { left: number }): unknown {
  const copy: unknown[] = [];
  for (let index = 0; index < array.length; index++) {
    const value = copyValue(array[index], depth - 1, size);
    if (value === NOT_PLAIN) return NOT_PLAIN;
    copy.push(value);
  }
  return copy;
}

function copyObject(object: object, depth: number, size: { left: number }): unknown {
  if (Object.getPrototypeOf(object) !== Object.prototype) return NOT_PLAIN;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    const given = (object as Readonly<Record<string, unknown>>)[key];
    if (given === undefined) continue;
    size.left -= key.length;
    // An assignment would set the prototype instead of a key.
    const value = key === "__proto__" ? NOT_PLAIN : copyValue(given, depth - 1, size);
    if (value === NOT_PLAIN) return NOT_PLAIN;
    copy[key] = value;
  }
  return copy;
}

/**
 * `now`, with every part that equals the same part of `before` replaced by that one: what depends on data that did not change is
 * not computed and drawn again after each fetch.
 */
export function keepEqual<Value>(before: unknown, now: Value): Value {
  if (Object.is(before, now)) return now;
  if (!isPlain(before) || !isPlain(now) || Array.isArray(before) !== Array.isArray(now)) return now;
  const keys = Object.keys(now);
  let isEqual = keys.length === Object.keys(before).length;
  const kept: Record<string, unknown> = Array.isArray(now) ? ([] as never) : {};
  for (const key of keys) {
    kept[key] = keepEqual(before[key], now[key]);
    isEqual &&= Object.hasOwn(before, key) && Object.is(kept[key], before[key]);
  }
  return (isEqual ? before : kept) as Value;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Without such text there is no number that JavaScript reads as infinite. Text inside strings may match as well. Only the first digit
 * of a number is tried: in a mebibyte of long numbers, trying each digit took a quarter of a second.
 */
const MAYBE_HUGE = /\d[eE]\+?\d{3}|(?<!\d)\d{309}/;

/**
 * Where a parsed JSON value has a number too large for JavaScript, such as `1e400`: its path, such as `payload.rows[3]`. It would
 * become `null` when it is stored. Null: there is none.
 */
export function hugeNumberIn(text: string, value: unknown): string | null {
  if (!MAYBE_HUGE.test(text)) return null;
  const rest: { path: string; part: unknown }[] = [{ path: "", part: value }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { path, part } = next;
    if (part === Number.POSITIVE_INFINITY || part === Number.NEGATIVE_INFINITY) return path;
    if (typeof part !== "object" || part === null) continue;
    for (const [key, inner] of Object.entries(part).reverse()) {
      const name = Array.isArray(part) ? `[${key}]` : `${path === "" ? "" : "."}${key}`;
      rest.push({ path: path + name, part: inner });
    }
  }
  return null;
}

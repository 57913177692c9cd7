/**
 * The known name that an unknown one was most likely meant to be; undefined when none is close. `slipsMax`: how many letters
 * may be wrong; left out, half of them.
 */
export function nearestName(
  unknown: string,
  known: Iterable<string>,
  // More than half of it wrong is another word, not a slip.
  slipsMax = Math.floor(Math.min(unknown.length, NAME_LENGTH_MAX) / 2),
): string | undefined {
  let nearest: string | undefined;
  let nearestDistance = slipsMax + 1;
  for (const name of known) {
    const distance = editDistance(unknown.slice(0, NAME_LENGTH_MAX).toLowerCase(), name.toLowerCase());
    if (distance < nearestDistance) [nearest, nearestDistance] = [name, distance];
  }
  return nearest;
}

/** What other systems call our fields and states, in small letters without `_` and `-`. Of several names, the first that is known. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  timezone: ["tz"],
  prompt: ["message"],
  text: ["message"],
  delay: ["runAt"],
  startat: ["runAt"],
  scheduledat: ["runAt"],
  retries: ["retryPolicy", "retry"],
  maxretries: ["retryPolicy", "retry"],
  attempts: ["retryPolicy", "retry"],
  cron: ["schedule"],
  finished: ["done"],
  success: ["done"],
  succeeded: ["done"],
  active: ["running"],
  error: ["failed"],
  scheduled: ["delayed"],
  name: ["id"],
};

/** The same for a field or a state, which other systems may call by another word. */
export function meantName(unknown: string, known: readonly string[]): string | undefined {
  const word = unknown.slice(0, NAME_LENGTH_MAX).toLowerCase().replaceAll(/[_-]/g, "");
  const synonyms = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined;
  return synonyms?.find((name) => known.includes(name)) ?? nearestName(unknown, known);
}

/** Keys are the caller's: a megabyte of one must not be compared letter by letter. */
const NAME_LENGTH_MAX = 64;

/** How many letters to insert, delete or replace (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(at(row, j) + 1, at(next, j - 1) + 1, replaced));
    }
    row = next;
  }
  return at(row, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

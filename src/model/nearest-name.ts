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

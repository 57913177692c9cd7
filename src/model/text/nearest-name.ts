/**
 * The known name that is closest to an unknown one; undefined: none is close. `slipsMax`: how many letters may be wrong; left
 * out: half of them.
 */
export function nearestName(
  unknown: string,
  known: Iterable<string>,
  // With more than half of its letters wrong it is another word.
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

/** Names of our fields and states in other systems, in lower case without `_` and `-`. The first known replacement is used. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  timezone: ["tz"],
  prompt: ["message"],
  text: ["message"],
  content: ["message"],
  task: ["instruction"],
  data: ["payload"],
  input: ["payload"],
  model: ["llmConfig"],
  queue: ["lane"],
  threadid: ["sessionKey", "session_key"],
  jobid: ["idempotencyKey"],
  tags: ["metadata"],
  delay: ["runAt"],
  eta: ["runAt"],
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
  url: ["executor"],
  max: ["concurrency"],
  limit: ["concurrency"],
};

/** The same for a field or a state, including names from other systems. */
export function meantName(unknown: string, known: readonly string[]): string | undefined {
  const word = unknown.slice(0, NAME_LENGTH_MAX).toLowerCase().replaceAll(/[_-]/g, "");
  const synonyms = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined;
  return synonyms?.find((name) => known.includes(name)) ?? nearestName(unknown, known);
}

/** Callers choose the keys: a key of a megabyte must not be compared letter by letter. */
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

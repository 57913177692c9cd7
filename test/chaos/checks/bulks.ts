import type { History } from "../history.ts";

/** A bulk action that was accepted ends, whichever process is killed, and reports the result for each named task. */
export function bulks({ bulks: accepted = [] }: History): string[] {
  return accepted.flatMap(({ bulkId, state, filter, matched, done, failed, skipped }) => {
    const covered = done + failed + skipped;
    // What a filter selects is looked for when its turn comes: some of it may be over by then.
    const isComplete = filter === null ? covered === matched : covered <= matched;
    return [
      ...(state === "done" ? [] : [`${bulkId} has not ended: it is ${state}`]),
      ...(isComplete ? [] : [`${bulkId} covered ${covered} tasks of ${matched}`]),
    ];
  });
}

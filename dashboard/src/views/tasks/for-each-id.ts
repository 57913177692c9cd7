/** How many requests are under way at once. */
const AT_ONCE = 6;

export interface EachResult {
  readonly done: number;
  readonly failed: number;
  /** Of the first that failed. */
  readonly error: unknown;
}

/** Does the same with each, a few at a time; one that is refused does not stop the others. */
export async function forEachId(
  ids: readonly string[],
  run: (id: string) => Promise<unknown>,
): Promise<EachResult> {
  const left = ids.values();
  const result = { done: 0, failed: 0, error: undefined as unknown };
  const work = async () => {
    for (const id of left) {
      try {
        await run(id);
        result.done += 1;
      } catch (error) {
        result.error ??= error;
        result.failed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return result;
}

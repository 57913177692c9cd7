/** What a computation in steps comes to, carried out at once. */
export function finished<Result>(steps: Generator<void, Result, void>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Replaces what PostgreSQL cannot store as text: NUL and halves of surrogate pairs. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** An array as PostgreSQL reads it. The driver would quote each number. */
export function numberArray(values: readonly (number | null)[]): string {
  return `{${values.map((value) => value ?? "null").join(",")}}`;
}

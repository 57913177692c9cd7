/** Replaces what PostgreSQL cannot store as text: NUL and halves of surrogate pairs. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

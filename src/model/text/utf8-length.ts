/** How many bytes a text takes in UTF-8. `Buffer` counts without a copy of the text; browsers, which check tasks too, have none. */
export function utf8Length(text: string): number {
  const { Buffer } = globalThis as { Buffer?: { byteLength(text: string): number } };
  return Buffer?.byteLength(text) ?? new TextEncoder().encode(text).length;
}

/** Characters of JSON that are written without letting other requests through: a few milliseconds. */
const PIECE_LENGTH = 262_144;
/** Rows likewise, however small they are. */
const PIECE_ROWS = 200;

/**
 * The JSON of a page of rows, the same that `JSON.stringify` makes, written a piece at a time: a large page takes it tens of
 * milliseconds, in which nobody else is answered.
 */
export async function pageText(page: object): Promise<string> {
  const fields: string[] = [];
  for (const [name, value] of Object.entries(page)) {
    const text = Array.isArray(value) ? await rowsText(value) : JSON.stringify(value);
    if (text !== undefined) fields.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${fields.join(",")}}`;
}

async function rowsText(rows: readonly unknown[]): Promise<string> {
  const texts: string[] = [];
  let length = 0;
  let count = 0;
  for (const row of rows) {
    const text = JSON.stringify(row) ?? "null";
    texts.push(text);
    length += text.length;
    count += 1;
    if (length < PIECE_LENGTH && count < PIECE_ROWS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    [length, count] = [0, 0];
  }
  return `[${texts.join(",")}]`;
}

/** Characters of JSON that are written before other requests get a turn: a few milliseconds. */
const PIECE_LENGTH = 262_144;
/** The same for rows, however small they are. */
const PIECE_ROWS = 200;

/**
 * The JSON of a page of rows, as `JSON.stringify` makes it, but written in pieces: a large page takes tens of milliseconds, which
 * would block all other requests.
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

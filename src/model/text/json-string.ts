const BACKSLASH = 0x5c;

/**
 * The index of the quote that ends the string which starts at `start` in a JSON text: the next one that an even number of backslashes
 * precedes. The engine's own search is many times as fast as a loop over the characters.
 */
export function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    if (end === -1) return json.length;
    let first = end;
    while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
}

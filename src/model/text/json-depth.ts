const [QUOTE, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

/** Whether arrays and objects in a JSON text are nested deeper than `max` levels. */
export function isDeeperThan(max: number, json: string): boolean {
  // Each level takes two characters: most texts need no closer look.
  if (json.length <= 2 * max) return false;
  let depth = 0;
  for (let index = 0; index < json.length; index++) {
    switch (json.charCodeAt(index)) {
      case QUOTE:
        index = endOfString(json, index);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        if (depth > max) return true;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
    }
  }
  return false;
}

/** Where the closing quote is: the next one that an even number of backslashes precedes. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    if (end === -1) return json.length;
    let first = end;
    while (json[first - 1] === "\\") first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
}

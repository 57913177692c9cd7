import { displayWidth, pad } from "../terminal/display-text.ts";
import { styled } from "../terminal/style.ts";

/** Names and values, one per line, without those that have no value. Further lines of a value are indented. */
export function sheetLines(
  fields: readonly (readonly [name: string, value: string | undefined])[],
): string[] {
  const given = fields.filter((field): field is [string, string] => field[1] !== undefined);
  const width = Math.max(0, ...given.map(([name]) => displayWidth(name)));
  return given.flatMap(([name, value]) => {
    const [first = "", ...rest] = value.split("\n");
    return [
      `${styled("dim", pad(name, width))}  ${first}`,
      ...rest.map((line) => `${" ".repeat(width + 2)}${line}`),
    ];
  });
}

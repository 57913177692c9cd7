import { safeJson } from "./display-text.ts";

/** Results go to stdout, everything else to stderr, so that a pipe carries only results. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One document per line, so that programs can read them as they come. */
export function printJson(value: unknown): void {
  print(safeJson(JSON.stringify(value)));
}

export function printNotice(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** The width of a line. Undefined in a pipe, where nothing is cut. */
export function lineWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}

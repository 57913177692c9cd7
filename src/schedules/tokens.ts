export interface Token {
  readonly kind: "moment" | "date" | "time" | "number" | "word" | "sign";
  /** In lower case. */
  readonly text: string;
}

/**
 * Splits a phrase into words, numbers, times and signs. Spaces are optional between a number and a word, as in `every 15min`.
 * Characters of no known token become signs, which the grammar refuses.
 */
export function tokenize(phrase: string): Token[] {
  const tokens: Token[] = [];
  for (const { groups } of withoutDots(phrase.toLowerCase()).matchAll(TOKEN)) {
    for (const [kind, text] of Object.entries(groups ?? {})) {
      if (text !== undefined) tokens.push({ kind: kind as Token["kind"], text });
    }
  }
  return tokens;
}

/** `a.m.` and `p.m.` are `am` and `pm`. */
function withoutDots(phrase: string): string {
  return phrase.replaceAll(/(?<!\p{L})([ap])\.m(?:\.|(?!\p{L}))/gu, "$1m");
}

const TOKEN = new RegExp(
  [
    String.raw`(?<moment>\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d))`,
    String.raw`(?<date>\d{4}-\d\d-\d\d(?!\d))`,
    String.raw`(?<time>\d+:\d+(?::\d+(?:\.\d+)?)?)`,
    String.raw`(?<number>\d+)`,
    String.raw`(?<word>\p{L}+)`,
    String.raw`(?<sign>\S)`,
  ].join("|"),
  "gu",
);

/** The parts of `JSON` that keep the text of a number, which older browsers do not have. */
const { rawJSON, isRawJSON } = JSON as {
  readonly rawJSON?: (source: string) => unknown;
  readonly isRawJSON?: (value: unknown) => boolean;
};

/** Only then may a number have lost digits. */
const MAY_LOSE_DIGITS = /[\d.]{16}|\de[+-]?\d{3}/i;
const EXACT_DIGITS = 15;

/** As `JSON.parse`, but numbers with more digits, or larger, than JavaScript has them stay as they were written: see `isExact`. */
export function parseExactly(text: string): unknown {
  if (rawJSON === undefined || !MAY_LOSE_DIGITS.test(text)) return JSON.parse(text);
  return parseNumbers(text, (value, source) => (losesDigits(value, source) ? rawJSON(source) : value));
}

/** Whether it is a number as it was written. `JSON.stringify` writes it so again. */
export function isExact(value: unknown): boolean {
  return isRawJSON?.(value) === true;
}

/** The first number of a JSON text that would not be sent as it is written. Throws if it is not JSON. */
export function lostNumber(text: string): string | undefined {
  let lost: string | undefined;
  parseNumbers(text, (value, source) => {
    if (lost === undefined && losesDigits(value, source)) lost = source;
  });
  return lost;
}

function parseNumbers(text: string, take: (value: number, source: string) => unknown): unknown {
  return JSON.parse(text, (_key: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? take(value, context?.source ?? String(value)) : value,
  );
}

function losesDigits(value: number, source: string): boolean {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return true;
  const digits = source.replace(/e.*|\D/gi, "").replace(/^0+/, "");
  return String(value) !== source && (digits.length > EXACT_DIGITS || (value === 0 && digits !== ""));
}

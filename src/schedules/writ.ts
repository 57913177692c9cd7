/** A command that an agent writes as `/schedule …`. */
export type Writ = CreateWrit | { readonly kind: "list" } | OrderWrit;

export interface CreateWrit {
  readonly kind: "create";
  readonly phrase: string;
  readonly message: string;
}

/** A command for an existing schedule. */
export interface OrderWrit {
  readonly kind: "cancel" | "pause" | "resume";
  readonly id: number;
}

/** A text that is not a valid writ, and why. */
export interface InvalidWrit {
  readonly kind: "invalid";
  /** The text after `/schedule`, or the whole text if it does not begin so. */
  readonly text: string;
  readonly reason: string;
}

/**
 * Parses a writ. The phrase of a new schedule is only extracted here; `parseSchedule` checks it.
 *
 * @example
 * parseWrit("/schedule every monday at 09:00: summarise the week");
 * // { kind: "create", phrase: "every monday at 09:00", message: "summarise the week" }
 */
export function parseWrit(text: string): Writ | InvalidWrit {
  const [, rest] = /^\s*\/schedule(?!\S)(.*)$/is.exec(text) ?? [];
  if (rest === undefined) return invalid(text, 'a writ begins with "/schedule"');
  const order = rest.trim();
  const [, word = "", argument = ""] = /^([a-z]*)(?!\S)(.*)$/is.exec(order) ?? [];
  switch (word.toLowerCase()) {
    case "list":
      return argument.trim() === "" ? { kind: "list" } : invalid(order, 'nothing can follow "list"');
    case "cancel":
    case "pause":
    case "resume":
      return parseOrder(word.toLowerCase() as OrderWrit["kind"], argument, order);
    default:
      return parseCreate(order);
  }
}

function parseOrder(kind: OrderWrit["kind"], argument: string, order: string): OrderWrit | InvalidWrit {
  const [, digits] = /^\s*#?(\d{1,15})\s*$/.exec(argument) ?? [];
  if (digits === undefined) {
    return invalid(order, `"${kind}" takes the number of a schedule, like /schedule ${kind} 42`);
  }
  return { kind, id: Number(digits) };
}

function parseCreate(order: string): CreateWrit | InvalidWrit {
  const [, quoted, bare, message = ""] = CREATE.exec(order) ?? CREATE_WITHOUT_SPACE.exec(order) ?? [];
  const phrase = (quoted ?? bare)?.trim();
  if (phrase === undefined) {
    return invalid(
      order,
      'write a colon and a space between time and message, as in "in 1 hour: look again"',
    );
  }
  if (message.trim() === "") return invalid(order, "the message after the colon is missing");
  return { kind: "create", phrase, message: message.trim() };
}

/**
 * The separator is the first colon before a space or the end: the one in 09:00 is before a digit. Quotes may be straight or
 * curly, since models write both. No phrase contains a quote.
 */
const CREATE = /^(?:["'“”„‘’]([^\n]*?)["'“”‘’]\s*:|([^\n]*?):)(?!\S)(.*)$/s;

/** If no colon on the line is before a space or the end, the separator is the first one that is not between two digits. */
const CREATE_WITHOUT_SPACE =
  /^(?:["'“”„‘’]([^\n]*?)["'“”‘’]\s*:|((?:[^\n:]|(?<=\d):(?=\d))+):)(?<!\d:(?=\d))(.*)$/s;

function invalid(text: string, reason: string): InvalidWrit {
  return { kind: "invalid", text: text.trim(), reason };
}

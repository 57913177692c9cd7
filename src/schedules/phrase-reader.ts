import type { RotaError } from "../model/errors.ts";
import { preview } from "../model/input/field-checks.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import { impossibleSchedule, notUnderstood } from "./not-understood.ts";
import { type Token, tokenize } from "./tokens.ts";

/** Reads the tokens of a phrase from left to right. Its errors say where the phrase stops being valid. */
export class PhraseReader {
  readonly #phrase: string;
  readonly #field: string;
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(phrase: string, field: string) {
    this.#phrase = phrase;
    this.#field = field;
    this.#tokens = tokenize(phrase);
  }

  /** Returns the next token without taking it. */
  peek(): Token | undefined {
    return this.#tokens[this.#position];
  }

  /** Takes the next token if it is of this kind. */
  take(kind: Token["kind"]): string | undefined {
    const token = this.peek();
    if (token?.kind !== kind) return undefined;
    this.#position += 1;
    return token.text;
  }

  /** Takes the next token if it is one of these words or signs. */
  takeOneOf(...texts: readonly string[]): string | undefined {
    const token = this.peek();
    if (token === undefined || !texts.includes(token.text)) return undefined;
    this.#position += 1;
    return token.text;
  }

  /** Takes the next token if it is a word of the table, and returns its meaning. */
  takeFrom<Meaning>(table: ReadonlyMap<string, Meaning>): Meaning | undefined {
    const token = this.peek();
    const meaning = token?.kind === "word" ? table.get(token.text) : undefined;
    if (meaning !== undefined) this.#position += 1;
    return meaning;
  }

  /** Throws if tokens are left over, which would be silently ignored otherwise. */
  end(): void {
    const token = this.peek();
    if (token !== undefined) {
      const previous = this.#taken();
      throw this.unclear(`nothing can follow "${preview(previous)}", but "${preview(token.text)}" does`);
    }
  }

  /** The error if the next token is not one that can follow, with a hint at the word that was perhaps meant. */
  expected(what: string, words: Iterable<string> = []): RotaError {
    const token = this.peek();
    const where = this.#position === 0 ? "it begins with" : `after "${preview(this.#taken())}" comes`;
    if (token === undefined) {
      return this.unclear(this.#position === 0 ? "it is empty" : `${where} nothing, but ${what} is needed`);
    }
    const nearest = token.kind === "word" ? nearestWord(token.text, words) : undefined;
    const hint = nearest === undefined ? `, but ${what} is needed` : `: did you mean "${nearest}"?`;
    return this.unclear(`${where} "${preview(token.text)}"${hint}`);
  }

  /** The error for a phrase that is not understood. */
  unclear(fault: string): RotaError {
    return notUnderstood(this.#phrase, fault, this.#field);
  }

  /** The error for a phrase that is understood but cannot be executed. */
  impossible(fault: string): RotaError {
    return impossibleSchedule(this.#phrase, fault, this.#field);
  }

  #taken(): string {
    return this.#tokens
      .slice(0, this.#position)
      .map(({ text }) => text)
      .join(" ");
  }
}

/** Many unknown words are not typing errors: `weekend` is not meant as `weekday`, and a wrong hint is worse than none. */
function nearestWord(word: string, words: Iterable<string>): string | undefined {
  // Almost any short word is similar to one of `h`, `in` and `wk`.
  const known = [...words].filter(({ length }) => length > 2);
  return nearestName(word, known, word.length < 3 ? 0 : word.length < 6 ? 1 : 2);
}

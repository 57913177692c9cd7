import type { TextBody } from "../model/text/text-body.ts";

/** Smaller bodies are sent at once. */
const LARGE_LENGTH = 262_144;
/** How much of a large body is written before other work gets a turn. */
const PIECE_BYTES = 65_536;

/** One text, unless it would be a large one: joining, encoding and writing megabytes in one go takes tens of milliseconds. */
export function textBody(texts: readonly string[]): TextBody {
  return lengthOf(texts) < LARGE_LENGTH ? texts.join("") : texts;
}

/** In UTF-16 code units. */
export function lengthOf(body: TextBody): number {
  return typeof body === "string" ? body.length : body.reduce((sum, { length }) => sum + length, 0);
}

export function byteLengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** The bytes of the texts. The reader of the other side decides how fast they are asked for. */
export async function* piecesOf(texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  }
}

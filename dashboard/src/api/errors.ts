import { ConnectionError, RotaError } from "../../../src/client/index.ts";

/** An error message for the user: that of the server as a sentence, or that the server is unreachable. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ConnectionError) return "The server cannot be reached.";
  const text = error instanceof Error ? error.message : String(error);
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(sentence) ? sentence : `${sentence}.`;
}

export function hasCode(error: unknown, code: RotaError["code"]): boolean {
  return error instanceof RotaError && error.code === code;
}

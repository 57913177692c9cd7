import { type CreateWrit, parseWrit } from "../../schedules/writ.ts";
import { UsageError } from "../terminal/usage-error.ts";

/** The phrase and the message of `rota schedule`. */
export type ScheduleOrder = Pick<CreateWrit, "phrase" | "message">;

/**
 * Separates phrase and message, as in a writ: `every monday at 09:00: summarise the week`, with or without quotes around the
 * whole. Two arguments are also accepted. Throws a UsageError.
 */
export function scheduleOrder(words: readonly string[]): ScheduleOrder {
  const [first = "", second = ""] = words;
  const writ = parseWrit(`/schedule ${words.join(" ")}`);
  if (writ.kind === "list")
    throw new UsageError("this command creates schedules; to list them: rota schedules");
  if (writ.kind !== "create" && writ.kind !== "invalid") {
    // A writ cancels what the command line deletes.
    const command = writ.kind === "cancel" ? "delete" : writ.kind;
    throw new UsageError(
      `this command creates schedules; to ${command} one: rota schedules ${command} ${writ.id}`,
    );
  }
  // Two arguments are phrase and message, unless a colon shows that they are two words of a text without quotes.
  if (words.length === 2 && !/:(?!\S)/.test(first)) return { phrase: first, message: second };
  if (writ.kind === "create") return { phrase: writ.phrase, message: writ.message };
  const hint = /:\s*$/.test(writ.text) ? "" : "; or write them as two arguments";
  throw new UsageError(writ.reason + hint);
}

import type { RotaEvent } from "../../../../src/client/index.ts";
import { formatCount } from "../../parts/format.ts";
import type { Glyph } from "../../parts/state.tsx";

/** `completed` for `task.completed`. */
export function wordOf({ type }: Pick<RotaEvent, "type">): string {
  return type.replace(/^task\./, "").replace(".", " ");
}

export function glyphOfEvent({ type, state }: Pick<RotaEvent, "type" | "state">): Glyph {
  if (type === "task.retrying") return "retry";
  return type === "batch.completed" ? "done" : state;
}

/** What an event says besides its type, in one line. */
export function textOfEvent(event: RotaEvent): string {
  const { error, progress, result, attempt, counts } = event;
  if (error !== undefined) return error;
  if (counts !== undefined) {
    return Object.entries(counts)
      .map(([state, count]) => `${formatCount(count)} ${state}`)
      .join(", ");
  }
  const value = progress ?? result;
  if (value !== undefined && value !== null) return shortText(value);
  return attempt === undefined ? "" : `attempt ${attempt}`;
}

const TEXT_MAX = 200;

function shortText(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.slice(0, TEXT_MAX);
}

import type { Explanation } from "../../model/explanation.ts";
import { oneLine } from "../terminal/display-text.ts";
import { styledState } from "../terminal/style.ts";
import { sheetLines } from "./sheet.ts";
import { shownMoment } from "./times.ts";

/** Why a task is in its state, for people. */
export function explanationSheet(explanation: Explanation, now: number): string[] {
  const { taskId, state, since, position, ahead, reasons } = explanation;
  return [
    ...sheetLines([
      ["task", taskId],
      ["state", styledState(state)],
      ["since", shownMoment(since, now)],
      ["position", position === 0 ? undefined : String(position)],
      ["ahead", ahead.length === 0 ? undefined : ahead.join("\n")],
    ]),
    "",
    ...(reasons.length === 0
      ? [`It does not wait: it is ${state}.`]
      : reasons.map(({ message }) => `- ${oneLine(message)}`)),
  ];
}

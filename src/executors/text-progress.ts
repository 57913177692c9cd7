import type { ExecutorContext } from "./executor.ts";

/** How much of a text is reported as progress: in JSON a character takes at most six bytes, and 16 KiB are allowed. */
const SHOWN_LENGTH_MAX = 2_500;

/** Reports a text while it is written: all of it so far, or its end if it is long. */
export function progressOfText(progress: ExecutorContext["progress"]): (added: string) => void {
  let text = "";
  let length = 0;
  return (added) => {
    if (added === "") return;
    length += added.length;
    text = (text + added).slice(-SHOWN_LENGTH_MAX);
    progress({ text: text.toWellFormed(), length });
  };
}

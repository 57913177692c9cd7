import type { MouseEvent as ReactMouseEvent } from "react";

/**
 * A click anywhere on a row opens it. Its link covers the row, except texts that say more when the pointer rests on them: they
 * are above the link, so a click on them is handed to it. In the capture phase, before they handle the click themselves.
 */
export function openRow(event: ReactMouseEvent<HTMLElement>): void {
  const link = event.currentTarget.querySelector(".main-link");
  if (link === null || (event.target as Element).closest("a, button, label, input") !== null) return;
  event.stopPropagation();
  // With the same modifiers: the browser opens a new tab as usual.
  link.dispatchEvent(new MouseEvent("click", event.nativeEvent));
}

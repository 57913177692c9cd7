/** Shows a text that is cut in full where the pointer rests on it, unless it has another title. For `mouseover`. */
export function showWholeText({ target }: MouseEvent): void {
  const text = target instanceof Element ? target.closest<HTMLElement>(".cut, .main-link") : null;
  if (text === null || (text.title !== "" && text.dataset["whole"] === undefined)) return;
  // The name of a row is cut by its cell.
  const isCut = [text, text.parentElement ?? text].some((box) => box.scrollWidth > box.clientWidth);
  text.dataset["whole"] = "";
  text.title = isCut ? (text.textContent ?? "") : "";
}

import { useEffect, useRef } from "react";

/** Actions by key: `j`, `enter`, `g t` for a sequence, `mod+k` for ctrl or cmd. */
export type KeyActions = Readonly<Record<string, () => void>>;

/** How long the second key of a pair may take. */
const PAIR_MS = 1_000;

/**
 * Keys of a view while it is shown. Inside inputs and dialogs only `mod+` keys work. The view that was shown last has priority.
 */
export function useKeys(actions: KeyActions): void {
  const current = useRef(actions);
  current.current = actions;
  useEffect(() => {
    const layer = () => current.current;
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, []);
}

const layers: (() => KeyActions)[] = [];
let pending: { readonly key: string; readonly at: number } | undefined;

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  const isTyping = isInput(event.target) || document.querySelector("dialog[open]") !== null;
  if (isTyping && !name.startsWith("mod+")) return;
  // Enter belongs to the focused button or link.
  if (name === "enter" && isControl(event.target)) return;
  const pair =
    pending !== undefined && event.timeStamp - pending.at < PAIR_MS ? `${pending.key} ${name}` : "";
  pending = undefined;
  const action = find(pair) ?? find(name);
  if (action !== undefined) {
    event.preventDefault();
    action();
  } else if (layers.some((layer) => Object.keys(layer()).some((each) => each.startsWith(`${name} `)))) {
    pending = { key: name, at: event.timeStamp };
  }
});

function find(name: string): (() => void) | undefined {
  for (const layer of layers.toReversed()) {
    const action = layer()[name];
    if (action !== undefined) return action;
  }
  return undefined;
}

function nameOf({ key, ctrlKey, metaKey }: KeyboardEvent): string {
  const name = key.length > 1 ? key.toLowerCase() : key;
  return ctrlKey || metaKey ? `mod+${name.toLowerCase()}` : name;
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}

/** Something that takes letters: a checkbox does not. */
const INPUTS = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]";

function isInput(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest(INPUTS) !== null;
}

import { createContext, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import { useKeys } from "../keys/use-keys.ts";
import { useLiveState } from "../live/live.tsx";
import { Icon, type IconName } from "../parts/icon.tsx";
import { useLocation } from "../parts/router.tsx";
import type { View } from "../views/view.ts";
import { switchTheme } from "./theme.ts";

const PaletteContext = createContext<() => void>(() => {});

/** Opens the search. */
export function usePalette(): () => void {
  return useContext(PaletteContext);
}

interface Option {
  readonly icon: IconName;
  readonly label: string;
  readonly hint?: string;
  readonly run: () => void;
}

interface PaletteProps {
  readonly items: readonly NonNullable<View["nav"]>[];
}

export function PaletteProvider({ items, children }: PaletteProps & { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const open = () => setOpen(true);
  useKeys({ "mod+k": open });
  return (
    <PaletteContext value={open}>
      {children}
      {isOpen && <Palette items={items} onClose={() => setOpen(false)} />}
    </PaletteContext>
  );
}

/** One field for everything: an id leads to its object, a word to the pages and actions that contain it. */
function Palette({ items, onClose }: PaletteProps & { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const listId = useId();
  const options = useOptions(items, text.trim());
  const current = Math.min(chosen, options.length - 1);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const run = (option: Option | undefined) => {
    if (option === undefined) return;
    onClose();
    option.run();
  };
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Search or jump to"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="palette-in">
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={options.length === 0 ? undefined : `${listId}-${current}`}
          aria-label="Search or jump to"
          placeholder="An id, an agent, a page…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setChosen(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step !== undefined)
              setChosen((current + step + options.length) % Math.max(1, options.length));
            else if (event.key === "Enter") run(options[current]);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <div className="palette-list" role="listbox" id={listId} aria-label="Results">
        {options.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys.
          <div
            key={option.label}
            id={`${listId}-${index}`}
            className="opt"
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => run(option)}
          >
            <Icon name={option.icon} />
            <span className="cut">{option.label}</span>
            <span className="r">{option.hint}</span>
          </div>
        ))}
      </div>
    </dialog>
  );
}

function useOptions(items: PaletteProps["items"], text: string): Option[] {
  const [, navigate] = useLocation();
  const { togglePaused, isPaused } = useLiveState();
  const fixed: Option[] = [
    ...items.map(({ label, icon, path, key }) => ({
      icon,
      label,
      ...(key === undefined ? {} : { hint: `g ${key}` }),
      run: () => navigate(path),
    })),
    {
      icon: isPaused ? "play" : "pause",
      label: isPaused ? "Go on live" : "Pause live updates",
      hint: "p",
      run: togglePaused,
    },
    { icon: "theme", label: "Switch theme", run: switchTheme },
  ];
  const matching = fixed.filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()));
  if (text === "") return matching;
  return [...namedBy(text, navigate), ...matching];
}

/** Guesses from the form of a text what it names. Nothing is requested before the user chooses. */
function namedBy(text: string, navigate: (to: string) => void): Option[] {
  const query = encodeURIComponent(text);
  const kind = /^tsk_\w+$/.test(text)
    ? ["Task", "tasks"]
    : /^bat_\w+$/.test(text)
      ? ["Batch", "batches"]
      : undefined;
  if (kind !== undefined)
    return [{ icon: "tasks", label: `${kind[0]} ${text}`, run: () => navigate(`/${kind[1]}/${text}`) }];
  const to = (name: string, label: string, icon: IconName): Option => ({
    icon,
    label: `${label} ${text}`,
    run: () => navigate(`/tasks?${name}=${query}`),
  });
  return [
    to("agentId", "Tasks of agent", "agents"),
    { icon: "sessions", label: `Session ${text}`, run: () => navigate(`/session?key=${query}`) },
  ];
}

import { createContext, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import { useSession } from "../api/session.tsx";
import { useKeys } from "../keys/use-keys.ts";
import { useLiveState } from "../live/live.tsx";
import { Icon, type IconName } from "../parts/icon.tsx";
import { useBase, useLocation } from "../parts/router.tsx";
import { askForNew } from "../parts/use-new.ts";
import { useZone, ZONES } from "../parts/zone.ts";
import { useQuery } from "../queries/use-query.ts";
import type { View } from "../views/view.ts";
import { switchTheme } from "./theme.ts";

const PaletteContext = createContext<() => void>(() => {});

/** Opens the search. */
export function usePalette(): () => void {
  return useContext(PaletteContext);
}

interface Option {
  readonly group: "Go to" | "Do";
  readonly icon: IconName;
  readonly label: string;
  readonly hint?: string | undefined;
  /** The page to go to. Absent: it only runs. */
  readonly href?: string;
  readonly run?: () => void;
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

/** One field for everything: an id leads to its object, a word to the agents, sessions, schedules, pages and actions that contain it. */
function Palette({ items, onClose }: PaletteProps & { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [, navigate] = useLocation();
  const base = useBase();
  const listId = useId();
  const options = useOptions(items, text.trim());
  const current = Math.min(chosen, options.length - 1);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever another one is chosen.
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const run = (option: Option | undefined, isNewTab: boolean) => {
    if (option === undefined) return;
    onClose();
    if (option.href !== undefined && isNewTab) {
      open(base + option.href, "_blank", "noopener");
      return;
    }
    if (option.href !== undefined) navigate(option.href);
    option.run?.();
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
          placeholder="An id, an agent, a session, a page…"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setChosen(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step !== undefined)
              setChosen((current + step + options.length) % Math.max(1, options.length));
            else if (event.key === "Enter") run(options[current], event.ctrlKey || event.metaKey);
            else return;
            event.preventDefault();
          }}
        />
        <span className="kbd" aria-hidden="true">
          esc
        </span>
      </div>
      <div className="palette-list" role="listbox" id={listId} aria-label="Results" ref={list}>
        {(["Go to", "Do"] as const).map((group) => {
          const first = options.findIndex((option) => option.group === group);
          if (first === -1) return null;
          return (
            <div key={group} role="group" aria-label={group}>
              <div className="opt-head" role="presentation">
                {group}
              </div>
              {options.map(
                (option, index) =>
                  option.group === group && (
                    // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys.
                    <div
                      key={option.label}
                      id={`${listId}-${index}`}
                      className="opt"
                      role="option"
                      tabIndex={-1}
                      aria-selected={index === current}
                      onClick={(event) => run(option, event.ctrlKey || event.metaKey)}
                    >
                      <Icon name={option.icon} />
                      <span className="cut">
                        <Marked text={option.label} part={text.trim()} />
                      </span>
                      <span className="r">{option.hint}</span>
                    </div>
                  ),
              )}
            </div>
          );
        })}
      </div>
      <div className="palette-foot" aria-hidden="true">
        <span>
          <span className="kbd">↑</span> <span className="kbd">↓</span> move
        </span>
        <span>
          <span className="kbd">↵</span> open
        </span>
        <span>
          <span className="kbd">ctrl</span> <span className="kbd">↵</span> open in a new tab
        </span>
      </div>
    </dialog>
  );
}

/** A text with the part that was searched for marked. */
function Marked({ text, part }: { readonly text: string; readonly part: string }) {
  const at = part === "" ? -1 : text.toLowerCase().indexOf(part.toLowerCase());
  if (at === -1) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + part.length)}</mark>
      {text.slice(at + part.length)}
    </>
  );
}

function useOptions(items: PaletteProps["items"], text: string): readonly Option[] {
  const { may } = useSession();
  const { togglePaused, isPaused } = useLiveState();
  const [zone, setZone] = useZone();
  const named = useNamed(text);
  const otherZone = zone === "utc" ? "mine" : "utc";
  const fixed: Option[] = [
    ...items.map(({ label, icon, path, key }) => ({
      group: "Go to" as const,
      icon,
      label,
      hint: key && `g ${key}`,
      href: path,
    })),
    ...items.flatMap(({ path, creates }): Option[] =>
      creates !== undefined && may(creates.needs)
        ? [{ group: "Do", icon: "plus", label: creates.label, href: path, run: () => askForNew(path) }]
        : [],
    ),
    {
      group: "Do",
      icon: isPaused ? "play" : "pause",
      label: isPaused ? "Go on live" : "Pause live updates",
      hint: "p",
      run: togglePaused,
    },
    { group: "Do", icon: "theme", label: "Switch theme", run: switchTheme },
    { group: "Do", icon: "clock", label: `Show times in ${ZONES[otherZone]}`, run: () => setZone(otherZone) },
  ];
  const contains = ({ label }: Option) => label.toLowerCase().includes(text.toLowerCase());
  const found = [...named, ...fixed.filter(contains)];
  // The server may have more than what was read.
  const all = text === "" ? fixed : found.length > 0 ? found : guessesOf(text);
  // In the order in which they are shown, for the arrow keys.
  return [...all.filter(({ group }) => group === "Go to"), ...all.filter(({ group }) => group === "Do")];
}

/** How many of each kind are offered. */
const NAMED_MAX = 5;

/** The objects that a text names: by the form of an id, or among the agents, sessions and schedules that the server lists first. */
function useNamed(text: string): readonly Option[] {
  const { client, may, me } = useSession();
  const { data } = useQuery({
    queryKey: ["palette"],
    queryFn: async ({ signal }) => {
      const [{ agents }, { sessions }, { schedules }] = await Promise.all([
        client.agents.list({}, { signal }),
        client.sessions.list({}, { signal }),
        client.schedules.list({}, { signal }),
      ]);
      return { agents, sessions, schedules };
    },
    enabled:
      may("read") && ["agents", "sessions", "schedules"].every((each) => me.features.includes(each as never)),
    staleTime: 30_000,
  });
  if (/^tsk_\w+$/.test(text)) return [go("tasks", `Task ${text}`, `/tasks/${text}`)];
  if (/^bat_\w+$/.test(text)) return [go("tasks", `Batch ${text}`, `/batches/${text}`)];
  const search = text.toLowerCase();
  const matching = <Item,>(list: readonly Item[] = [], nameOf: (item: Item) => string) =>
    list.filter((item) => nameOf(item).toLowerCase().includes(search)).slice(0, NAMED_MAX);
  return [
    ...matching(data?.agents, ({ id }) => id).map(({ id }) =>
      go("agents", `Agent ${id}`, agentHref(id), "its tasks"),
    ),
    ...matching(data?.sessions, ({ key }) => key).map(({ key }) =>
      go("sessions", `Session ${key}`, sessionHref(key)),
    ),
    ...matching(data?.schedules, ({ id, name }) => `${name ?? ""} ${id}`).map((each) =>
      go("schedules", `Schedule ${scheduleName(each)}`, `/schedules/${each.id}`),
    ),
  ];
}

function guessesOf(text: string): readonly Option[] {
  return [
    go("tasks", `Tasks of agent ${text}`, agentHref(text)),
    go("sessions", `Session ${text}`, sessionHref(text)),
  ];
}

function go(icon: IconName, label: string, href: string, hint?: string): Option {
  return { group: "Go to", icon, label, href, hint };
}

function agentHref(id: string): string {
  return `/tasks?agentId=${encodeURIComponent(id)}`;
}

function sessionHref(key: string): string {
  return `/session?key=${encodeURIComponent(key)}`;
}

function scheduleName({ id, name }: { readonly id: number; readonly name?: string | null }): string {
  return name ?? String(id);
}

/** The names of the symbols in index.html. */
export type IconName =
  | "agents"
  | "alert"
  | "approvals"
  | "arrow"
  | "audit"
  | "bell"
  | "bin"
  | "bookmark"
  | "budgets"
  | "check"
  | "clock"
  | "columns"
  | "copy"
  | "down"
  | "download"
  | "events"
  | "filter"
  | "gates"
  | "info"
  | "key"
  | "lanes"
  | "left"
  | "link"
  | "lock"
  | "menu"
  | "more"
  | "overview"
  | "pause"
  | "person"
  | "play"
  | "plus"
  | "queue"
  | "retry"
  | "right"
  | "schedules"
  | "search"
  | "send"
  | "sessions"
  | "settings"
  | "sort"
  | "stop"
  | "tasks"
  | "terminal"
  | "theme"
  | "undo"
  | "webhooks"
  | "workers"
  | "x";

/** An icon beside a word that explains it, so it is hidden from screen readers. */
export function Icon({
  name,
  size = 16,
}: {
  readonly name: IconName;
  readonly size?: 16 | 14 | 12 | undefined;
}) {
  return (
    <svg className={size === 16 ? "i" : `i i-${size}`} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

/** The logo of Rota. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 20 20" aria-hidden="true">
      <path
        d="M16.1 6.1A7.25 7.25 0 1 0 17.25 10"
        fill="none"
        stroke="currentColor"
        strokeWidth="2.5"
        strokeLinecap="round"
      />
      <circle cx="10" cy="10" r="2.6" fill="var(--accent)" />
    </svg>
  );
}

import { type FormEvent, useId, useState } from "react";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Link, useSearch } from "../../parts/router.tsx";
import { useKept } from "../../parts/use-kept.ts";

/** A set of filters saved under a name. */
interface SavedView {
  readonly name: string;
  readonly search: string;
}

const VIEWS_MAX = 20;
const NAME_CHARS_MAX = 40;

function parseViews(kept: unknown): readonly SavedView[] {
  if (!Array.isArray(kept)) return [];
  return kept.filter(({ name, search }) => typeof name === "string" && typeof search === "string");
}

/** The saved views, and whether the address is one of them. */
export function useSavedViews() {
  const search = useSearch();
  const [views, keep] = useKept("views", parseViews);
  return { views, keep, isCurrent: views.some((view) => view.search === search) };
}

/** Links to the views saved in this browser, and a button to save the current one. */
export function SavedViews({ views, keep }: ReturnType<typeof useSavedViews>) {
  const search = useSearch();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {views.map((view) => (
        <Link
          key={view.name}
          href={`/tasks?${view.search}`}
          aria-current={view.search === search ? "page" : undefined}
        >
          {view.name}
        </Link>
      ))}
      {(search !== "" || views.length > 0) && (
        <button type="button" className="tabs-end" onClick={() => setOpen(true)}>
          <Icon name="bookmark" size={14} />
          Save view
        </button>
      )}
      {isOpen && <SaveView views={views} search={search} onKeep={keep} onClose={() => setOpen(false)} />}
    </>
  );
}

interface SaveViewProps {
  readonly views: readonly SavedView[];
  readonly search: string;
  readonly onKeep: (views: readonly SavedView[]) => void;
  readonly onClose: () => void;
}

function SaveView({ views, search, onKeep, onClose }: SaveViewProps) {
  const id = useId();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    if (name === "") return;
    onKeep([...views.filter((view) => view.name !== name), { name, search }].slice(-VIEWS_MAX));
    onClose();
  };
  return (
    <Dialog title="Saved views" onClose={onClose} size="small">
      <form className="dialog-form" onSubmit={save}>
        <div className="field">
          <label htmlFor={id}>Name of this view</label>
          <div className="field-row">
            <input
              className="input"
              id={id}
              name="name"
              data-focus
              maxLength={NAME_CHARS_MAX}
              autoComplete="off"
            />
            <Button type="submit" className="btn-main">
              Save
            </Button>
          </div>
          <p className="muted">
            Stored in this browser. To share the view, send a link to this page.
            {views.length >= VIEWS_MAX && ` There are ${VIEWS_MAX}: a further one replaces the oldest.`}
          </p>
        </div>
        {views.map((view) => (
          <div key={view.name} className="field-row">
            <span className="cut grow">{view.name}</span>
            <IconButton
              icon="x"
              label={`Remove ${view.name}`}
              onClick={() => onKeep(views.filter((each) => each !== view))}
            />
          </div>
        ))}
      </form>
    </Dialog>
  );
}

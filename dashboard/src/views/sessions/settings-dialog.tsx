import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useId } from "react";
import type { Session, SessionChanges } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";

const TEXTS = [
  ["agentId", "Agent"],
  ["lane", "Lane"],
] as const;
const CHOICES = [
  [
    "mode",
    "Mode",
    [
      ["queue", "queue"],
      ["followup", "followup"],
      ["interrupt", "interrupt"],
    ],
  ],
  [
    "drop",
    "When full",
    [
      ["old", "drop the oldest"],
      ["new", "refuse new ones"],
    ],
  ],
] as const;
const NUMBERS = [
  ["maxConcurrent", "At once", 1],
  ["cap", "May wait", 1],
  ["debounceMs", "Join within, ms", 0],
  ["contextWindow", "Context, tokens", 1],
] as const;

/** The settings of a session. An empty field removes the session's own value. */
export default function SettingsDialog({
  session,
  onClose,
}: {
  readonly session: Session;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const queries = useQueryClient();
  const formId = useId();
  const { mutate, isPending, error } = useMutation({
    mutationFn: (changes: SessionChanges) => client.sessions.update(session.key, changes),
    onSuccess: (changed) => {
      queries.setQueryData(["session", session.key], changed);
      void queries.invalidateQueries({ queryKey: ["sessions"] });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const changes = changesIn(new FormData(event.currentTarget), session);
    if (Object.keys(changes).length === 0) onClose();
    else mutate(changes);
  };
  const field = (name: string, label: string, input: ReactNode) => (
    <div className="field" key={name}>
      <label htmlFor={`${formId}-${name}`}>{label}</label>
      {input}
    </div>
  );
  return (
    <Dialog
      title="Settings of the session"
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" form={formId} className="btn btn-main" disabled={isPending}>
            Save
          </button>
        </>
      }
    >
      <form id={formId} className="dialog-form" onSubmit={submit}>
        <div className="form-2">
          {TEXTS.map(([name, label], index) =>
            field(
              name,
              label,
              <input
                className="input"
                id={`${formId}-${name}`}
                name={name}
                spellCheck={false}
                defaultValue={session[name]}
                data-focus={index === 0 ? "" : undefined}
              />,
            ),
          )}
          {CHOICES.map(([name, label, choices]) =>
            field(
              name,
              label,
              <span className="select">
                <select className="input" id={`${formId}-${name}`} name={name} defaultValue={session[name]}>
                  {choices.map(([value, word]) => (
                    <option key={value} value={value}>
                      {word}
                    </option>
                  ))}
                </select>
                <Icon name="down" size={12} />
              </span>,
            ),
          )}
          {NUMBERS.map(([name, label, min]) =>
            field(
              name,
              label,
              <input
                className="input"
                id={`${formId}-${name}`}
                name={name}
                type="number"
                min={min}
                defaultValue={session[name] ?? ""}
              />,
            ),
          )}
        </div>
        <p className="muted">An empty field takes back what was set for this session.</p>
        {error !== null && (
          <div className="field">
            <span className="err" role="alert">
              <Icon name="alert" size={14} />
              {sentenceOf(error)}
            </span>
          </div>
        )}
      </form>
    </Dialog>
  );
}

/** Only the changed fields, so that the others still follow the configuration. */
function changesIn(fields: FormData, session: Session): SessionChanges {
  const numbers: readonly string[] = NUMBERS.map(([name]) => name);
  const changed = [...fields].flatMap(([name, given]) => {
    const text = String(given).trim();
    if (text === String(session[name as keyof Session] ?? "")) return [];
    return [[name, text === "" ? null : numbers.includes(name) ? Number(text) : text]];
  });
  return Object.fromEntries(changed) as SessionChanges;
}

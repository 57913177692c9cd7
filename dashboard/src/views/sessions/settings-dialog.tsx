import type { Session, SessionChanges } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Field, FormDialog } from "../../parts/form.tsx";
import { useQueryClient } from "../../queries/query-context.ts";

const TEXTS = [
  ["agentId", "Agent"],
  ["lane", "Lane"],
] as const;
const CHOICES = [
  ["mode", "Mode", ["queue", "followup", "interrupt", "steer", "collect"]],
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
export function SettingsDialog({
  session,
  onClose,
}: {
  readonly session: Session;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const queries = useQueryClient();
  return (
    <FormDialog
      title="Settings of the session"
      action="Save"
      size="medium"
      send={async (fields) => {
        const changes = changesIn(fields, session);
        return Object.keys(changes).length === 0 ? session : client.sessions.update(session.key, changes);
      }}
      onDone={(changed) => {
        queries.setQueryData(["session", session.key], changed);
        void queries.invalidateQueries({ queryKey: ["sessions"] });
      }}
      onClose={onClose}
    >
      <div className="form-2">
        {TEXTS.map(([name, label], index) => (
          <Field key={name} name={name} label={label} defaultValue={session[name]} isFirst={index === 0} />
        ))}
        {CHOICES.map(([name, label, options]) => (
          <Field key={name} name={name} label={label} options={options} defaultValue={session[name]} />
        ))}
        {NUMBERS.map(([name, label, min]) => (
          <Field
            key={name}
            name={name}
            label={label}
            type="number"
            min={min}
            defaultValue={session[name] ?? ""}
          />
        ))}
      </div>
      <p className="muted">Empty: use the default.</p>
    </FormDialog>
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

import { type FormEvent, type KeyboardEvent, type ReactNode, useId, useState } from "react";
import type { ScheduledTask } from "../../../../src/client/index.ts";
import { sentenceOf } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { formFields, type Input, inputOf } from "../../forms/form-schema.ts";
import { MoreFields } from "../../forms/schema-fields.tsx";
import { useSchemas } from "../../forms/use-schemas.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useLocation } from "../../parts/router.tsx";
import { useMutation } from "../../queries/use-mutation.ts";
import { useQuery } from "../../queries/use-query.ts";
import { PreviewPane, usePreview } from "./preview.tsx";
import { fieldsOf, type ScheduleFields, toChanges, toNewSchedule, WORK_KINDS } from "./schedule-input.ts";
import { useRefresh } from "./use-schedule-actions.ts";
import { MY_ZONE } from "./zoned-time.ts";

const OVERLAPS = [
  ["skip", "skip this one"],
  ["queue", "wait its turn"],
  ["replace", "replace the old run"],
  ["allow", "run both"],
] as const;
const CATCH_UPS = [
  ["one", "run once"],
  ["none", "run none"],
  ["all", "run all"],
] as const;

/** Actions of their own on the page of a schedule. */
const ELSEWHERE: ReadonlySet<string> = new Set(["status"]);

interface ScheduleFormProps {
  /** Absent: a new schedule. */
  readonly schedule?: ScheduledTask;
  readonly onClose: () => void;
}

/** Creates or changes a schedule, with a preview of its next due times. */
export function ScheduleForm({ schedule, onClose }: ScheduleFormProps) {
  const id = useId();
  const [before] = useState(() => fieldsOf(schedule, MY_ZONE));
  const [fields, setFields] = useState(before);
  const [isActive, setActive] = useState(true);
  const preview = usePreview(fields);
  const { mutate, isPending, error } = useSave({
    schedule,
    before,
    fields,
    isActive,
    rest: (data) => inputOf(more, data, values),
    onClose,
  });
  const set = (change: Partial<ScheduleFields>) => setFields((current) => ({ ...current, ...change }));
  const schemas = useSchemas();
  const shown: readonly string[] = [...Object.keys(before), ...WORK_KINDS, "enabled"];
  const more = formFields(
    schemas.data ?? {},
    schedule === undefined ? "NewSchedule" : "ScheduleChanges",
  ).filter(({ name }) => !shown.includes(name) && !ELSEWHERE.has(name));
  const values = (schedule ?? {}) as unknown as Input;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  };
  const press = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  const isWrong = preview.next.error !== null && !preview.isEmpty;
  return (
    <Dialog
      title={schedule === undefined ? "New schedule" : "Edit schedule"}
      onClose={onClose}
      size="wide"
      footer={
        <>
          {schedule === undefined && (
            <label className="check-row">
              <input
                type="checkbox"
                className="check"
                checked={isActive}
                onChange={(event) => setActive(event.target.checked)}
              />
              Start active
            </label>
          )}
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" form={`${id}-form`} className="btn btn-main" disabled={isPending}>
            {schedule === undefined ? "Create schedule" : "Save"}
          </button>
        </>
      }
    >
      <div className="dialog-body">
        <form id={`${id}-form`} className="dialog-form" onSubmit={submit} onKeyDown={press}>
          {error !== null && (
            <p className="err" role="alert">
              <Icon name="alert" size={14} />
              {sentenceOf(error)}
            </p>
          )}
          <Field id={`${id}-when`} label="When" hint="In words, or as cron: 30 2 * * *">
            <input
              className="input input-lg"
              id={`${id}-when`}
              required
              data-focus
              autoComplete="off"
              spellCheck={false}
              placeholder="every weekday at 06:00"
              aria-invalid={isWrong}
              aria-describedby={`${id}-when-hint`}
              value={fields.schedule}
              onChange={(event) => set({ schedule: event.target.value })}
            />
          </Field>
          <div className="form-2">
            <ZoneField id={id} value={fields.tz} onChange={(tz) => set({ tz })} />
            <AgentField id={id} value={fields.agent} onChange={(agent) => set({ agent })} />
          </div>
          <WorkField id={id} fields={fields} isNew={schedule === undefined} onChange={set} />
          <Field id={`${id}-name`} label="Name" isOptional>
            <input
              className="input"
              id={`${id}-name`}
              autoComplete="off"
              value={fields.name}
              onChange={(event) => set({ name: event.target.value })}
            />
          </Field>
          <Policies id={id} fields={fields} onChange={set} />
          <MoreFields fields={more} values={values} />
        </form>
        <div className="dialog-view" aria-live="polite">
          <PreviewPane preview={preview} />
        </div>
      </div>
    </Dialog>
  );
}

interface SaveOptions {
  readonly schedule: ScheduledTask | undefined;
  readonly onClose: () => void;
  readonly before: ScheduleFields;
  readonly fields: ScheduleFields;
  readonly isActive: boolean;
  /** The fields that the schema alone describes. */
  readonly rest: (data: FormData) => Input;
}

function useSave({ schedule, before, fields, isActive, rest, onClose }: SaveOptions) {
  const { client } = useSession();
  const [, navigate] = useLocation();
  const refresh = useRefresh();
  return useMutation({
    mutationFn: async (data: FormData) => {
      if (schedule !== undefined) {
        return client.schedules.update(schedule.id, { ...toChanges(before, fields), ...rest(data) });
      }
      const input = { ...toNewSchedule(fields, isActive), ...rest(data) };
      return (await client.schedules.create(input)).scheduled_task;
    },
    onSuccess: ({ id }) => {
      refresh(id);
      onClose();
      if (schedule === undefined) navigate(`/schedules/${id}`);
    },
  });
}

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly isOptional?: boolean;
  readonly hint?: string;
  readonly children: ReactNode;
}

function Field({ id, label, isOptional = false, hint, children }: FieldProps) {
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {isOptional && <span className="muted optional"> optional</span>}
      </label>
      {children}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

interface TextProps {
  readonly id: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function ZoneField({ id, value, onChange }: TextProps) {
  // There are hundreds of time zones: they are added to the page when the field gets focus.
  const [zones, setZones] = useState<readonly string[]>([]);
  return (
    <Field id={`${id}-zone`} label="Zone">
      <input
        className="input"
        id={`${id}-zone`}
        required
        autoComplete="off"
        spellCheck={false}
        list={`${id}-zones`}
        value={value}
        onFocus={() => setZones(["UTC", ...Intl.supportedValuesOf("timeZone")])}
        onBlur={() => setZones([])}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={`${id}-zones`}>
        {zones.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </Field>
  );
}

function AgentField({ id, value, onChange }: TextProps) {
  const { client } = useSession();
  const { data: agents = [] } = useQuery({
    queryKey: ["choices", "agentId"],
    queryFn: async ({ signal }) => (await client.agents.list({}, { signal })).agents.map((agent) => agent.id),
    staleTime: 60_000,
  });
  return (
    <Field id={`${id}-agent`} label="Agent">
      <input
        className="input"
        id={`${id}-agent`}
        placeholder="index"
        autoComplete="off"
        spellCheck={false}
        list={`${id}-agents`}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={`${id}-agents`}>
        {agents.map((agent) => (
          <option key={agent} value={agent} />
        ))}
      </datalist>
    </Field>
  );
}

interface PartProps {
  readonly id: string;
  readonly fields: ScheduleFields;
  readonly onChange: (change: Partial<ScheduleFields>) => void;
}

function WorkField({ id, fields, isNew, onChange }: PartProps & { readonly isNew: boolean }) {
  const { kind, text } = fields;
  const label = kind.charAt(0).toUpperCase() + kind.slice(1);
  return (
    <>
      {isNew && (
        <fieldset className="field">
          <legend className="label">What it is</legend>
          <span className="seg">
            {WORK_KINDS.map((each) => (
              <label key={each}>
                <input
                  type="radio"
                  name="kind"
                  value={each}
                  checked={kind === each}
                  onChange={() => onChange({ kind: each })}
                />
                {each === "payload" ? "payload (JSON)" : each}
              </label>
            ))}
          </span>
        </fieldset>
      )}
      <Field id={`${id}-text`} label={label}>
        <textarea
          className={`input ${kind === "payload" ? "mono" : ""}`}
          id={`${id}-text`}
          rows={4}
          required
          value={text}
          onChange={(event) => onChange({ text: event.target.value })}
        />
      </Field>
    </>
  );
}

function Policies({ id, fields, onChange }: PartProps) {
  return (
    <details className="more">
      <summary>
        <Icon name="right" size={12} />
        When a run is late, overlaps or fails
      </summary>
      <div className="form-2 policies">
        <Choice
          id={`${id}-overlap`}
          label="Still running"
          value={fields.overlap}
          choices={OVERLAPS}
          onChange={(overlap) => onChange({ overlap })}
        />
        <Choice
          id={`${id}-catch-up`}
          label="After downtime"
          value={fields.catch_up}
          choices={CATCH_UPS}
          onChange={(catch_up) => onChange({ catch_up })}
        />
        <Field id={`${id}-failures`} label="Pause after failures" isOptional>
          <input
            className="input"
            id={`${id}-failures`}
            type="number"
            min={1}
            placeholder="never"
            value={fields.pause_after_failures}
            onChange={(event) => onChange({ pause_after_failures: event.target.value })}
          />
        </Field>
        <Field id={`${id}-lane`} label="Lane" isOptional>
          <input
            className="input"
            id={`${id}-lane`}
            placeholder="cron"
            spellCheck={false}
            value={fields.lane}
            onChange={(event) => onChange({ lane: event.target.value })}
          />
        </Field>
      </div>
    </details>
  );
}

interface ChoiceProps<Value extends string> {
  readonly id: string;
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
}

function Choice<Value extends string>({ id, label, value, choices, onChange }: ChoiceProps<Value>) {
  return (
    <Field id={id} label={label}>
      <span className="select">
        <select
          className="input"
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value as Value)}
        >
          {choices.map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
        <Icon name="down" size={12} />
      </span>
    </Field>
  );
}

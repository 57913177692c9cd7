import { useState } from "react";
import type { ScheduledTask } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { formFields, type Input, inputOf } from "../../forms/form-schema.ts";
import { MoreFields } from "../../forms/schema-fields.tsx";
import { useSchemas } from "../../forms/use-schemas.ts";
import { Field, FormDialog } from "../../parts/form.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useLocation } from "../../parts/router.tsx";
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
  const { client } = useSession();
  const [, navigate] = useLocation();
  const refresh = useRefresh();
  const [before] = useState(() => fieldsOf(schedule, MY_ZONE));
  const [fields, setFields] = useState(before);
  const [isActive, setActive] = useState(true);
  const preview = usePreview(fields);
  const schemas = useSchemas();
  const isNew = schedule === undefined;
  const shown: readonly string[] = [...Object.keys(before), ...WORK_KINDS, "enabled"];
  const more = formFields(schemas.data ?? {}, isNew ? "NewSchedule" : "ScheduleChanges").filter(
    ({ name }) => !shown.includes(name) && !ELSEWHERE.has(name),
  );
  const values = (schedule ?? {}) as unknown as Input;
  const set = (change: Partial<ScheduleFields>) => setFields((current) => ({ ...current, ...change }));
  return (
    <FormDialog
      title={isNew ? "New schedule" : "Edit schedule"}
      action={isNew ? "Create schedule" : "Save"}
      size="wide"
      send={async (data) => {
        const rest = inputOf(more, data, values);
        if (!isNew) return client.schedules.update(schedule.id, { ...toChanges(before, fields), ...rest });
        const input = { ...toNewSchedule(fields, isActive), ...rest };
        return (await client.schedules.create(input)).scheduled_task;
      }}
      onDone={({ id }) => {
        refresh(id);
        if (isNew) navigate(`/schedules/${id}`);
      }}
      onClose={onClose}
      beside={<PreviewPane preview={preview} />}
      footer={
        isNew && (
          <label className="check-row">
            <input
              type="checkbox"
              className="check"
              checked={isActive}
              onChange={(event) => setActive(event.target.checked)}
            />
            Start active
          </label>
        )
      }
    >
      <Field
        name="schedule"
        label="When"
        hint="In words, or as cron: 30 2 * * *"
        className="input-lg"
        required
        isFirst
        placeholder="every weekday at 06:00"
        aria-invalid={preview.next.error !== null && !preview.isEmpty}
        value={fields.schedule}
        onChange={(text) => set({ schedule: text })}
      />
      <div className="form-2">
        <ZoneField value={fields.tz} onChange={(tz) => set({ tz })} />
        <AgentField value={fields.agent} onChange={(agent) => set({ agent })} />
      </div>
      <WorkField fields={fields} isNew={isNew} onChange={set} />
      <Field name="name" label="Name" isOptional value={fields.name} onChange={(name) => set({ name })} />
      <Policies fields={fields} onChange={set} />
      <MoreFields fields={more} values={values} />
    </FormDialog>
  );
}

interface TextProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function ZoneField(props: TextProps) {
  // There are hundreds of time zones: they are added to the page when the field gets focus.
  const [zones, setZones] = useState<readonly string[]>([]);
  return (
    <Field
      name="tz"
      label="Zone"
      required
      suggestions={zones}
      onFocus={() => setZones(["UTC", ...Intl.supportedValuesOf("timeZone")])}
      onBlur={() => setZones([])}
      {...props}
    />
  );
}

function AgentField(props: TextProps) {
  const { client } = useSession();
  const { data: agents = [] } = useQuery({
    queryKey: ["choices", "agentId"],
    queryFn: async ({ signal }) => (await client.agents.list({}, { signal })).agents.map((agent) => agent.id),
    staleTime: 60_000,
  });
  return <Field name="agent" label="Agent" placeholder="index" suggestions={agents} {...props} />;
}

interface PartProps {
  readonly fields: ScheduleFields;
  readonly onChange: (change: Partial<ScheduleFields>) => void;
}

function WorkField({ fields, isNew, onChange }: PartProps & { readonly isNew: boolean }) {
  const { kind, text } = fields;
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
      <Field
        name={kind}
        label={kind.charAt(0).toUpperCase() + kind.slice(1)}
        className={kind === "payload" ? "mono" : ""}
        rows={4}
        required
        value={text}
        onChange={(value) => onChange({ text: value })}
      />
    </>
  );
}

function Policies({ fields, onChange }: PartProps) {
  return (
    <details className="more">
      <summary>
        <Icon name="right" size={12} />
        When a run is late, overlaps or fails
      </summary>
      <div className="form-2 policies">
        <Field
          name="overlap"
          label="Still running"
          options={OVERLAPS}
          value={fields.overlap}
          onChange={(overlap) => onChange({ overlap: overlap as ScheduleFields["overlap"] })}
        />
        <Field
          name="catch_up"
          label="After downtime"
          options={CATCH_UPS}
          value={fields.catch_up}
          onChange={(catchUp) => onChange({ catch_up: catchUp as ScheduleFields["catch_up"] })}
        />
        <Field
          name="pause_after_failures"
          label="Pause after failures"
          isOptional
          type="number"
          min={1}
          placeholder="never"
          value={fields.pause_after_failures}
          onChange={(count) => onChange({ pause_after_failures: count })}
        />
        <Field
          name="lane"
          label="Lane"
          isOptional
          placeholder="cron"
          value={fields.lane}
          onChange={(lane) => onChange({ lane })}
        />
      </div>
    </details>
  );
}

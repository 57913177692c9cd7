import { type ReactNode, useState } from "react";
import { Coded } from "../parts/coded.tsx";
import { Field } from "../parts/form.tsx";
import { formatCount } from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import { type FormField, type Input, textOfValue } from "./form-schema.ts";

/** Texts of more than a line. */
const LONG: ReadonlySet<string> = new Set(["message", "instruction"]);

interface SchemaFieldsProps {
  readonly fields: readonly FormField[];
  /** What the fields have at first. */
  readonly values?: Input;
  /** Fields that the user cannot change. */
  readonly fixed?: readonly string[];
  /** Whether the first field has the focus at first. */
  readonly isFirst?: boolean;
  /** The path of the group: `retryPolicy.` */
  readonly prefix?: string;
}

/** Fields of an input, with what the server says about them. */
export function SchemaFields({
  fields,
  values = {},
  fixed = [],
  isFirst = false,
  prefix = "",
}: SchemaFieldsProps) {
  return fields.map((field, index) =>
    field.kind === "variants" ? (
      <Variants
        key={field.name}
        field={field}
        values={(values[field.name] ?? {}) as Input}
        path={prefix + field.name}
      />
    ) : field.kind === "group" ? (
      <fieldset key={field.name} className="field group">
        <legend className="label mono">{field.name}</legend>
        <span className="hint">{described(field)}</span>
        <div className="form-2">
          <SchemaFields
            fields={field.fields}
            values={(values[field.name] ?? {}) as Input}
            prefix={`${prefix}${field.name}.`}
          />
        </div>
      </fieldset>
    ) : (
      <Field
        key={field.name}
        name={prefix + field.name}
        label={<span className="mono">{field.name}</span>}
        hint={described(field)}
        required={field.isRequired}
        isOptional={!field.isRequired}
        isFirst={isFirst && index === 0}
        readOnly={fixed.includes(field.name)}
        defaultValue={textOfValue(field, values[field.name])}
        {...controlOf(field)}
      />
    ),
  );
}

interface VariantsProps {
  readonly field: FormField;
  readonly values: Input;
  readonly path: string;
}

/** An object with a type, and the fields of the chosen type. */
function Variants({ field, values, path }: VariantsProps) {
  const before = String(values["type"] ?? "");
  const [type, setType] = useState(before);
  const chosen = field.fields.find(({ name }) => name === type);
  return (
    <>
      <Field
        name={`${path}.type`}
        label={<span className="mono">{field.name}</span>}
        hint={described(field)}
        isOptional
        // Types that only the configuration may use stay as they are.
        options={[...new Set(["", ...field.choices, before])]}
        defaultValue={before}
        onChange={setType}
      />
      {chosen !== undefined && chosen.fields.length > 0 && (
        <fieldset className="field group" key={type}>
          <legend className="label mono">{type}</legend>
          <div className="form-2">
            <SchemaFields fields={chosen.fields} values={type === before ? values : {}} prefix={`${path}.`} />
          </div>
        </fieldset>
      )}
    </>
  );
}

function controlOf({ name, kind, choices, min, max, isRequired }: FormField) {
  switch (kind) {
    case "choice":
      return { options: isRequired ? choices : ["", ...choices] };
    case "boolean":
      return { options: ["", "true", "false"] };
    case "number":
      return { type: "number", step: "any", min, max };
    case "time":
      return { type: "datetime-local", step: 1 };
    case "json":
      return { rows: name === "tasks" ? 10 : 3, className: "mono" };
    default:
      return { ...(LONG.has(name) ? { rows: 5 } : {}), suggestions: choices };
  }
}

/** Its description, its bounds, and how to write it. */
function described({ description, kind, min, max }: FormField): ReactNode {
  const bounds =
    min !== undefined && max !== undefined
      ? ` ${formatCount(min)} to ${formatCount(max)}.`
      : min !== undefined && ` At least ${formatCount(min)}.`;
  return (
    <>
      <Coded text={description} />
      {bounds}
      {kind === "json" && " As JSON."}
      {kind === "list" && " With commas between them."}
    </>
  );
}

/** Fields that are rarely needed. They are sent also while they are folded. */
export function MoreFields(props: SchemaFieldsProps) {
  if (props.fields.length === 0) return null;
  return (
    <details className="more">
      <summary>
        <Icon name="right" size={12} />
        More fields
      </summary>
      <div className="dialog-form">
        <SchemaFields {...props} />
      </div>
    </details>
  );
}

import { lostNumber } from "../api/exact-json.ts";
import { fromField, toField } from "../parts/zone.ts";

/** The part of JSON Schema that the server describes its inputs with. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: JsonSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly examples?: readonly unknown[];
}

export type Schemas = Readonly<Record<string, JsonSchema>>;

/** A field of a form. */
export interface FormField {
  readonly name: string;
  readonly kind: "text" | "number" | "boolean" | "choice" | "time" | "list" | "json" | "group" | "variants";
  readonly isRequired: boolean;
  readonly description: string;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** All values of a choice; suggestions for a text; the types of variants. */
  readonly choices: readonly string[];
  /** A text of digits is sent as a number. */
  readonly takesNumber: boolean;
  /** The fields of a group; of variants, one group for each type. */
  readonly fields: readonly FormField[];
}

export type Input = Readonly<Record<string, unknown>>;

export interface FormFault {
  readonly field: string;
  readonly message: string;
}

/** What the form itself finds wrong. It has the form of an error of the server. */
export class FormError extends Error {
  readonly details: { readonly faults: readonly FormFault[] };

  constructor(faults: readonly FormFault[]) {
    super(faults.map(({ message }) => message).join("; "));
    this.details = { faults };
  }
}

/** The fields of an input, as `GET /openapi.json` describes it. */
export function formFields(schemas: Schemas, name: string): FormField[] {
  return fieldsOf(schemas, schemas[name] ?? {});
}

function fieldsOf(schemas: Schemas, schema: JsonSchema): FormField[] {
  const { properties = {}, required = [] } = resolve(schemas, schema)[0] ?? {};
  return Object.entries(properties).map(([name, property]) => {
    const forms = resolve(schemas, property);
    const isRequired = required.includes(name);
    const kind = kindOf(schemas, forms);
    return {
      name,
      ...kind,
      // A group that may be left out requires nothing. The server checks one that is filled in part.
      fields:
        isRequired || kind.kind === "variants"
          ? kind.fields
          : kind.fields.map((field) => ({ ...field, isRequired: false })),
      isRequired,
      description: property.description ?? forms[0]?.description ?? "",
      takesNumber: forms.length > 1 && forms.some(({ type }) => type === "integer"),
    };
  });
}

/** The forms that a value may have, without references and without null. */
function resolve(schemas: Schemas, schema: JsonSchema): JsonSchema[] {
  const { $ref, anyOf, allOf } = schema;
  if ($ref !== undefined) return resolve(schemas, schemas[$ref.split("/").at(-1) ?? ""] ?? {});
  const several = anyOf ?? allOf;
  if (several !== undefined) return several.flatMap((each) => resolve(schemas, each));
  const types = [schema.type].flat().filter((type) => type !== "null");
  return types.map((type) => ({ ...schema, ...(type !== undefined && { type }) }));
}

type Kind = Pick<FormField, "kind" | "choices" | "fields" | "min" | "max">;

function kindOf(schemas: Schemas, forms: readonly JsonSchema[]): Kind {
  const choices = forms
    .flatMap((form) => form.enum ?? (form.const === undefined ? [] : [form.const]))
    .filter((choice) => choice !== null)
    .map(String);
  const is = (kind: FormField["kind"]): Kind => ({ kind, choices, fields: [] });
  const [form] = forms;
  const types = forms.map(({ properties }) => properties?.["type"]?.const);
  if (forms.length > 1 && types.every((type) => typeof type === "string")) {
    const fields = forms.map((variant, index) => ({
      ...is("group"),
      name: String(types[index]),
      isRequired: false,
      description: "",
      takesNumber: false,
      fields: fieldsOf(schemas, variant).filter(({ name }) => name !== "type"),
    }));
    return { ...is("variants"), choices: types.map(String), fields };
  }
  if (form === undefined || forms.length > 1) {
    return is(forms.some(({ type }) => type === "string") ? "text" : "json");
  }
  if (choices.length > 0) return is("choice");
  switch (form.type) {
    case "boolean":
      return is("boolean");
    case "integer":
    case "number":
      return { ...is("number"), min: bound(form.minimum), max: bound(form.maximum) };
    case "string":
      return is(form.format === "date-time" ? "time" : "text");
    case "array":
      return is(resolve(schemas, form.items ?? {}).every(({ type }) => type === "string") ? "list" : "json");
    default:
      if (form.properties === undefined || form.additionalProperties !== false) {
        return is("json");
      }
      return { ...is("group"), fields: fieldsOf(schemas, form) };
  }
}

/** Beyond the safe integers it is no bound of the field. */
function bound(limit: number | undefined): number | undefined {
  return Number.isSafeInteger(limit) && Math.abs(limit ?? 0) < Number.MAX_SAFE_INTEGER ? limit : undefined;
}

/** The text of a value in the form. */
export function textOfValue({ kind }: FormField, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "time") return toField(Date.parse(String(value)));
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/**
 * The input that a form describes. What is empty is left out. With `before`, only what differs from it, and null for what was emptied.
 * Throws a `FormError`.
 */
export function inputOf(fields: readonly FormField[], data: FormData, before: Input = {}): Input {
  const faults: FormFault[] = [];
  const input = read(fields, data, before, "", faults);
  if (faults.length > 0) throw new FormError(faults);
  return input;
}

function read(
  fields: readonly FormField[],
  data: FormData,
  before: Input,
  prefix: string,
  faults: FormFault[],
): Input {
  const input: Record<string, unknown> = {};
  for (const field of fields) {
    const path = prefix + field.name;
    const known = before[field.name] ?? undefined;
    if (field.kind === "group") {
      const group = read(field.fields, data, (known ?? {}) as Input, `${path}.`, faults);
      // A group is replaced as a whole.
      if (Object.keys(group).length > 0) input[field.name] = { ...(known as Input | undefined), ...group };
      continue;
    }
    if (field.kind === "variants") {
      const type = String(data.get(`${path}.type`) ?? "");
      const { fields: own = [] } = field.fields.find(({ name }) => name === type) ?? {};
      // It is replaced as a whole.
      const variant = { type, ...read(own, data, {}, `${path}.`, faults) };
      if (type === "") {
        if (known !== undefined) input[field.name] = null;
      } else if (!isSame(variant, known)) input[field.name] = variant;
      continue;
    }
    const text = String(data.get(path) ?? "");
    if (text.trim() === "") {
      if (known !== undefined && data.has(path)) input[field.name] = null;
    } else if (text !== textOfValue(field, known)) {
      try {
        input[field.name] = parsedValue(field, text);
      } catch (error) {
        faults.push({ field: path, message: `\`${path}\` ${(error as Error).message}` });
      }
    }
  }
  return input;
}

/** Whether two objects have the same fields, in any order. */
function isSame(one: Input, other: unknown): boolean {
  const text = (value: object) => JSON.stringify(Object.entries(value).sort());
  return typeof other === "object" && other !== null && text(one) === text(other);
}

function parsedValue({ kind, takesNumber }: FormField, text: string): unknown {
  switch (kind) {
    case "number":
      return Number(text);
    case "boolean":
      return text === "true";
    case "time":
      return new Date(fromField(text)).toISOString();
    case "list":
      return text.split(/[\s,]+/).filter((each) => each !== "");
    case "json":
      return parsedJson(text);
    default:
      return takesNumber && /^-?\d{1,15}$/.test(text.trim()) ? Number(text) : text;
  }
}

/** The JSON in a field. Throws a `FormError`. */
export function jsonOf(field: string, text: string): unknown {
  try {
    return parsedJson(text);
  } catch (error) {
    throw new FormError([{ field, message: `\`${field}\` ${(error as Error).message}` }]);
  }
}

/** Throws an error with the rest of "`field` …". */
function parsedJson(text: string): unknown {
  let lost: string | undefined;
  try {
    lost = lostNumber(text);
  } catch (error) {
    throw new Error(`is not JSON: ${(error as Error).message}`);
  }
  if (lost === undefined) return JSON.parse(text);
  throw new Error(`has a number that would not be kept as it is, ${lost}: write it as text, in quotes`);
}

/** The faults that an error names, by their fields. */
export function faultsOf(error: unknown): readonly FormFault[] {
  const { details, message } = error as Partial<FormError> & { details?: { field?: unknown } };
  if (Array.isArray(details?.faults)) return details.faults;
  const field = details?.field;
  return typeof field === "string" ? [{ field, message: message ?? "" }] : [];
}

import { RotaError } from "../errors.ts";
import { type Fields, invalidField, knownHint, preview } from "./field-checks.ts";
import type {
  Fault,
  Field,
  FieldTable,
  FilterSchema,
  InputLimits,
  ReadChangesOf,
  Reading,
  ReadOf,
  Schema,
} from "./schema.ts";

/** Input of another kind can have thousands of faults. The first ones say enough, and each costs time. */
const FAULTS_MAX = 10;

const NO_LIMITS: InputLimits = {};

/**
 * Checks an input and returns its fields. Throws one `invalid_field` with everything that is wrong: for each fault its field and
 * what to write instead. `prefix` comes before the names of the fields.
 */
export function readFields<Table extends FieldTable>(
  schema: FilterSchema<Table>,
  given: Fields,
  limits: InputLimits = NO_LIMITS,
  prefix = "",
): ReadOf<Table> {
  const reading: Reading = { faults: [], limits };
  const read = readInto(schema, given, prefix, reading);
  if (reading.faults.length > 0) throw faultsError(schema.noun, reading.faults);
  return read as ReadOf<Table>;
}

/** The same for a schema of changes. */
export function readChanges<Table extends FieldTable>(
  schema: Schema<Table> & { readonly isChanges: true },
  given: Fields,
  limits?: InputLimits,
): ReadChangesOf<Table> {
  return readFields(schema, given, limits) as unknown as ReadChangesOf<Table>;
}

/** Reads the fields of an object, and adds its faults to `reading`. `prefix` is the path to the object with a dot. */
export function readInto(
  schema: Pick<Schema, "fields" | "elsewhere" | "isChanges" | "refusesNull">,
  given: Fields,
  prefix: string,
  reading: Reading,
): Record<string, unknown> {
  const { fields, elsewhere, isChanges = false, refusesNull = false } = schema;
  const read: Record<string, unknown> = {};
  let hasUnknown = false;
  for (const name of Object.keys(given)) {
    const value = given[name];
    if (value === undefined) continue;
    if (reading.faults.length >= FAULTS_MAX) return read;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) {
      hasUnknown = true;
      reading.faults.push(unknownField(name, Object.keys(fields), prefix, elsewhere));
    } else if (value !== null || refusesNull || takesNull(field, isChanges)) {
      read[name] = readValue(field, value, prefix === "" ? name : prefix + name, reading);
    } else if (isChanges) {
      read[name] = null;
    }
  }
  // A name that is misspelt is not missing as well.
  if (!isChanges && !hasUnknown) addMissing(fields, given, prefix, reading);
  return read;
}

/** Whether null is a value of the field, or a wrong one. */
function takesNull({ shape, required }: Field, isChanges: boolean): boolean {
  return shape.type === "json" || (isChanges && required);
}

/** Undefined: it is wrong. */
function readValue(field: Field, value: unknown, path: string, reading: Reading): unknown {
  try {
    return field.read(value, path, reading);
  } catch (error) {
    if (!(error instanceof RotaError) || error.code !== "invalid_field") throw error;
    reading.faults.push({ field: String(error.details?.["field"] ?? path), message: error.message });
    return undefined;
  }
}

function addMissing(fields: FieldTable, given: Fields, prefix: string, reading: Reading): void {
  for (const name of requiredNames(fields)) {
    if ((given[name] ?? undefined) !== undefined) continue;
    const field = fields[name] as Field;
    const path = `${prefix}${name}`;
    if (field.missing === undefined) readValue(field, undefined, path, reading);
    else reading.faults.push({ field: path, message: `\`${path}\` ${field.missing}` });
  }
}

const namesOfTables = new WeakMap<FieldTable, readonly string[]>();

function requiredNames(fields: FieldTable): readonly string[] {
  const known = namesOfTables.get(fields);
  if (known !== undefined) return known;
  const names = Object.keys(fields).filter((name) => fields[name]?.required);
  namesOfTables.set(fields, names);
  return names;
}

/** The fault of a field that does not exist. Suggests the one that was probably meant. */
function unknownField(
  name: string,
  known: readonly string[],
  prefix: string,
  elsewhere: Readonly<Record<string, string>> = {},
): Fault {
  const hint = Object.hasOwn(elsewhere, name) ? elsewhere[name] : knownHint(name, known, prefix);
  return { field: `${prefix}${name}`, message: `unknown field \`${prefix}${preview(name)}\`: ${hint}` };
}

/** A single fault is the message itself. */
function faultsError(noun: string, faults: readonly Fault[]): RotaError {
  const [first, second] = faults as readonly [Fault, ...Fault[]];
  if (second === undefined) return invalidField(first.field, first.message);
  const count = faults.length < FAULTS_MAX ? faults.length : `at least ${FAULTS_MAX}`;
  const shown = faults.slice(0, FAULTS_MAX);
  const sentences = shown.map(({ message }) => `\n- ${message}`).join("");
  return new RotaError("invalid_field", `the ${noun} has ${count} faults:${sentences}`, {
    details: { field: first.field, faults: shown },
  });
}

/*
 * Each input is described once, as a table of fields. The table gives the TypeScript type (`InputOf`), the checks and messages
 * (`readFields`), the OpenAPI schema (`src/api/input-schema.ts`) and the flags of the command line (`src/cli/flags/`).
 */

/** The form of a value, for readers that describe it: OpenAPI, the command line, forms. */
export type Shape =
  | { readonly type: "text"; readonly description?: string }
  | { readonly type: "boolean" | "time" }
  /** Any object, or any JSON. */
  | { readonly type: "object" | "json" }
  | NumberShape
  | { readonly type: "choice"; readonly choices: readonly string[] }
  | { readonly type: "list"; readonly of: Shape; readonly min?: number; readonly max?: number }
  | { readonly type: "fields"; readonly fields: FieldTable }
  /** An object whose field `type` says which other fields it has: those of each type. */
  | { readonly type: "variants"; readonly of: Readonly<Record<string, FieldTable>> }
  | { readonly type: "union"; readonly of: readonly Shape[] }
  /** One of the others with a name and a description of its own. */
  | (Component & { readonly type: "component"; readonly of: Shape });

export interface NumberShape {
  readonly type: "integer" | "number";
  readonly min?: number;
  readonly max?: number;
  /** Such as `milliseconds`. */
  readonly unit?: string;
}

/** What a schema of the OpenAPI document says of itself. */
export interface Component {
  readonly name: string;
  readonly description: string;
  readonly examples: readonly unknown[];
}

/** A fault of an input: the field, and a sentence with what to write instead. */
export interface Fault {
  readonly field: string;
  readonly message: string;
}

/** Limits of checks that the configuration sets. */
export interface InputLimits {
  /** The longest `timeout`. */
  readonly timeoutMaxMs?: number;
}

/** The faults found so far, and the limits of the checks. */
export interface Reading {
  readonly faults: Fault[];
  readonly limits: InputLimits;
}

/** What a value must be. `In` is its type as given, `Out` its type after the check. */
export interface Kind<In, Out = In> {
  readonly shape: Shape;
  /** Returns the checked value. Throws `invalid_field`, or adds several faults. `field` is its name with its path. */
  readonly read: (value: unknown, field: string, reading: Reading) => Out;
  /** Never set: the type of the value as given. */
  readonly input?: In;
}

export interface About {
  /** For people: a sentence in Markdown. */
  readonly description?: string;
  /** What holds if the field is left out, in Markdown. */
  readonly default?: string;
  /** Its flag of the command line with the name of its value: `--agent <id>`. Left out: it has none. */
  readonly flag?: string;
  /** The rest of "`field` …" if a required field is missing. Left out: what `read` throws. */
  readonly missing?: string;
}

/** A field of an input. */
export interface Field<In = unknown, Out = unknown, Required extends boolean = boolean>
  extends Kind<In, Out>,
    About {
  readonly required: Required;
}

export type FieldTable = Readonly<Record<string, Field>>;

/** The schema of a filter, which is the query of a request. */
export interface FilterSchema<Fields extends FieldTable = FieldTable> {
  /** What it is called in messages: `task`. */
  readonly noun: string;
  readonly fields: Fields;
  /** Null is most likely a mistake, since a filter without the field selects more. Left out: null counts as left out. */
  readonly refusesNull?: boolean;
}

/** The schema of an input, which is the body of a request. */
export interface Schema<Fields extends FieldTable = FieldTable> extends FilterSchema<Fields>, Component {
  /** Names of fields that callers look for here, with where to find them: the end of "unknown field `name`: …". */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** In changes a field that is left out stays, and null resets an optional field. Elsewhere null counts as left out. */
  readonly isChanges?: boolean;
}

export function optional<In, Out>(kind: Kind<In, Out>, about: About = {}): Field<In, Out, false> {
  return { ...kind, ...about, required: false };
}

export function required<In, Out>(kind: Kind<In, Out>, about: About = {}): Field<In, Out, true> {
  return { ...kind, ...about, required: true };
}

/** The description of a field for people, with its default. */
export function describeField({ description, default: value }: About): string | undefined {
  if (value === undefined) return description;
  return `${description ?? ""} Default: ${value}.`.trim();
}

type RequiredNames<Fields extends FieldTable> = {
  [Name in keyof Fields]: Fields[Name]["required"] extends true ? Name : never;
}[keyof Fields];

type In<Given extends Field> = Given extends Field<infer Value, unknown> ? Value : never;
type Out<Given extends Field> = Given extends Field<unknown, infer Value> ? Value : never;

/** The type of an input, as a program writes it. */
export type InputOf<Fields extends FieldTable> = {
  readonly [Name in RequiredNames<Fields>]: In<Fields[Name]>;
} & {
  readonly [Name in Exclude<keyof Fields, RequiredNames<Fields>>]?: In<Fields[Name]>;
};

/** An input whose optional fields may also be null. */
export type OrNull<Input> = {
  readonly [Name in keyof Input]: undefined extends Input[Name] ? Input[Name] | null : Input[Name];
};

/** The type of changes: each field is optional, and null resets those that have a default. */
export type ChangesOf<Fields extends FieldTable> = {
  readonly [Name in keyof Fields]?: In<Fields[Name]> | (Name extends RequiredNames<Fields> ? never : null);
};

/** The type of an input after its check. */
export type ReadOf<Fields extends FieldTable> = {
  readonly [Name in RequiredNames<Fields>]: Out<Fields[Name]>;
} & {
  readonly [Name in Exclude<keyof Fields, RequiredNames<Fields>>]?: Out<Fields[Name]>;
};

/** The same for changes. */
export type ReadChangesOf<Fields extends FieldTable> = {
  readonly [Name in keyof Fields]?: Out<Fields[Name]> | (Name extends RequiredNames<Fields> ? never : null);
};

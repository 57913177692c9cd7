import { z } from "zod";
import {
  type Component,
  describeField,
  type Field,
  type FieldTable,
  type FilterSchema,
  type Schema,
  type Shape,
} from "../model/input/schema.ts";
import { time } from "./time.ts";

/** The type of a field's value, as it is given. */
type In<Given extends Field> = Given extends Field<infer Value, unknown> ? Value : never;

type RequestShape<Fields extends FieldTable> = {
  [Name in keyof Fields]: Fields[Name]["required"] extends true
    ? z.ZodType<In<Fields[Name]>>
    : z.ZodExactOptional<z.ZodType<In<Fields[Name]>>>;
};

type RequestSchema<Fields extends FieldTable> = z.ZodObject<RequestShape<Fields>, z.core.$strict>;

/**
 * The schema of a request, for OpenAPI. Its optional fields may also be null: in a create, null counts as left out; in a change,
 * it resets the field. The TypeScript types stay as they are: a program omits what it does not have.
 */
export function requestSchema<Fields extends FieldTable>(schema: Schema<Fields>): RequestSchema<Fields> {
  return requestObject(schema).meta(metaOf(schema)) as unknown as RequestSchema<Fields>;
}

/** The same for a body that may be left out. */
export function optionalRequestSchema<Fields extends FieldTable>(schema: Schema<Fields>) {
  return (requestObject(schema) as unknown as RequestSchema<Fields>).nullish().meta(metaOf(schema));
}

function requestObject({ fields, isChanges = false }: Pick<Schema, "fields" | "isChanges">) {
  return z.strictObject(
    mapFields(fields, ({ shape, required }) => {
      const value = zodOf(shape);
      if (required) return isChanges ? value.exactOptional() : value;
      return shape.type === "json" ? value.optional() : value.nullable().exactOptional();
    }),
  );
}

/** The schema of a query, whose values are text. A choice and a time have the same text in a query as in JSON. */
export function querySchema<Fields extends FieldTable>({ fields }: FilterSchema<Fields>) {
  const shape = mapFields(fields, ({ shape }) => {
    const isText = shape.type === "choice" || shape.type === "time";
    return (isText ? zodOf(shape) : z.string()).exactOptional();
  });
  type Shape = { [Name in keyof Fields]: z.ZodExactOptional<z.ZodString> };
  return z.strictObject(shape) as unknown as z.ZodObject<Shape, z.core.$strict>;
}

function metaOf({ name, description, examples }: Component) {
  return { id: name, description, examples: [...examples] };
}

/** The same fields in a response, which leaves out those that are not set. */
export function optionalFields<Fields extends FieldTable>(fields: Fields) {
  const shape = mapFields(fields, ({ shape }) =>
    shape.type === "json" ? zodOf(shape).optional() : zodOf(shape).exactOptional(),
  );
  return shape as unknown as { [Name in keyof Fields]: z.ZodExactOptional<z.ZodType<In<Fields[Name]>>> };
}

/** The same fields in a response that always has all of them. */
export function presentFields<Fields extends FieldTable>(fields: Fields) {
  const shape = mapFields(fields, ({ shape }) => zodOf(shape));
  return shape as unknown as { [Name in keyof Fields]: z.ZodType<In<Fields[Name]>> };
}

/** The same, where null means that a field is not set. */
export function nullableFields<Fields extends FieldTable>(fields: Fields) {
  const shape = mapFields(fields, ({ shape }) => zodOf(shape).nullable());
  return shape as unknown as { [Name in keyof Fields]: z.ZodType<In<Fields[Name]> | null> };
}

function mapFields(fields: FieldTable, toZod: (field: Field) => z.ZodType): Record<string, z.ZodType> {
  const entries = Object.entries(fields).map(([name, field]) => {
    const description = describeField(field);
    const value = toZod(field);
    return [name, description === undefined ? value : value.describe(description)];
  });
  return Object.fromEntries(entries);
}

/** The schema of a value. */
function zodOf(shape: Shape): z.ZodType {
  switch (shape.type) {
    case "text":
      return shape.description === undefined ? z.string() : z.string().describe(shape.description);
    case "boolean":
      return z.boolean();
    case "time":
      return time;
    case "object":
      return z.record(z.string(), z.unknown());
    case "json":
      return z.unknown();
    case "integer":
    case "number": {
      const { type, min, max } = shape;
      const value = type === "integer" ? z.int() : z.number();
      const bounded = min === undefined ? value : value.min(min);
      return max === undefined ? bounded : bounded.max(max);
    }
    case "choice":
      return shape.choices.length === 1
        ? z.literal(shape.choices as string[])
        : z.enum(shape.choices as [string, ...string[]]);
    case "list": {
      const list = z.array(zodOf(shape.of));
      const bounded = shape.min === undefined ? list : list.min(shape.min);
      return shape.max === undefined ? bounded : bounded.max(shape.max);
    }
    case "fields":
      return requestObject(shape);
    case "variants":
      return z.union(
        Object.entries(shape.of).map(([type, fields]) =>
          requestObject({ fields }).extend({ type: z.literal(type) }),
        ) as unknown as [z.ZodType, ...z.ZodType[]],
      );
    case "union":
      return z.union(shape.of.map(zodOf) as [z.ZodType, ...z.ZodType[]]);
    case "component":
      return componentOf(shape);
  }
}

const components = new Map<string, z.ZodType>();

/** A component of the document exists once, however many fields have it. */
function componentOf(shape: Extract<Shape, { type: "component" }>): z.ZodType {
  const known = components.get(shape.name);
  if (known !== undefined) return known;
  const made = zodOf(shape.of).meta(metaOf(shape));
  components.set(shape.name, made);
  return made;
}

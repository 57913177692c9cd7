import { z } from "zod";

/**
 * The fields of a request, where each that may be left out may also be null: in a create that counts as left out, in a
 * change it takes the value back. The types stay as they are: whoever writes a program leaves out what it does not have.
 */
export function orNull<Shape extends z.core.$ZodLooseShape>(shape: Shape): Shape {
  const fields = Object.entries(shape).map(([name, field]) => [name, fieldOrNull(field as z.ZodType)]);
  return Object.fromEntries(fields) as Shape;
}

function fieldOrNull(field: z.ZodType): z.ZodType {
  if (!(field instanceof z.ZodExactOptional || field instanceof z.ZodOptional)) return field;
  const inner = field.unwrap() as z.ZodType;
  if (inner instanceof z.ZodNullable || inner instanceof z.ZodUnknown) return field;
  const nullable = inner.nullable().exactOptional();
  return field.description === undefined ? nullable : nullable.describe(field.description);
}

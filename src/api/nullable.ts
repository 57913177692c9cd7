import { z } from "zod";

/**
 * The fields of a request, where each optional field may also be null. In a create, null counts as absent; in a change, it
 * removes the value. The TypeScript types stay as they are: a program omits what it does not have.
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

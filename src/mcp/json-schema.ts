import type { Field, FieldTable, Shape } from "../model/input/schema.ts";

export type JsonSchema = { readonly [name: string]: unknown };

/**
 * The JSON Schema of the arguments of a tool, from the same table of fields that checks them. It says as little as possible: a
 * client sends it to its model with every request.
 */
export function argumentsSchema(fields: FieldTable): JsonSchema & { readonly type: "object" } {
  const required = Object.keys(fields).filter((name) => fields[name]?.required);
  return {
    type: "object",
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)])),
    ...(required.length === 0 ? {} : { required }),
  };
}

function fieldSchema({ shape, description }: Field): JsonSchema {
  return { ...shapeSchema(shape), ...(description === undefined ? {} : { description }) };
}

function shapeSchema(shape: Shape): JsonSchema {
  switch (shape.type) {
    case "text":
      return { type: "string" };
    case "boolean":
      return { type: "boolean" };
    case "time":
      return { type: "string", format: "date-time" };
    case "integer":
    case "number":
      return { type: shape.type, ...bound("minimum", shape.min), ...bound("maximum", shape.max) };
    case "choice":
      return { enum: shape.choices };
    case "list":
      return { type: "array", items: shapeSchema(shape.of), ...bound("maxItems", shape.max) };
    case "union":
      return { anyOf: shape.of.map(shapeSchema) };
    case "component":
      return shapeSchema(shape.of);
    case "object":
    case "fields":
    case "variants":
      return { type: "object" };
    case "json":
      return {};
  }
}

/** A bound that only says that a number must be exact is left out. */
function bound(name: string, value: number | undefined): JsonSchema {
  return value === undefined || Math.abs(value) >= 2 ** 31 - 1 ? {} : { [name]: value };
}

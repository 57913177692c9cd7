import { z } from "zod";
import { configSchema } from "./schema.ts";

/** An option of the configuration. */
export interface Option {
  readonly path: readonly string[];
  /** The environment variable that sets it. */
  readonly variable: string;
  /** How a text, from a variable or a flag, becomes its value. */
  readonly kind: "text" | "number" | "boolean" | "json";
  /** Undefined when it has none. */
  readonly defaultValue: unknown;
  readonly description: string;
}

/** Every option of the schema. */
export const OPTIONS: readonly Option[] = optionsIn(configSchema, []);

function optionsIn(schema: z.core.$ZodType, path: readonly string[]): Option[] {
  const { inner, defaultValue } = unwrap(schema);
  if (inner instanceof z.ZodNever) return [];
  if (inner instanceof z.ZodObject) {
    return Object.entries(inner.shape).flatMap(([key, value]) =>
      optionsIn(value as z.ZodType, [...path, key]),
    );
  }
  const description = z.globalRegistry.get(schema)?.description ?? "";
  return [{ path, variable: variableOf(path), kind: kindOf(inner), defaultValue, description }];
}

function unwrap(schema: z.core.$ZodType): { inner: z.core.$ZodType; defaultValue: unknown } {
  let inner = schema;
  let defaultValue: unknown;
  for (;;) {
    if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault)
      defaultValue = inner.def.defaultValue;
    else if (!(inner instanceof z.ZodExactOptional)) return { inner, defaultValue };
    inner = inner.def.innerType;
  }
}

function kindOf(schema: z.core.$ZodType): Option["kind"] {
  if (schema instanceof z.ZodNumber) return "number";
  if (schema instanceof z.ZodBoolean) return "boolean";
  return schema instanceof z.ZodString || schema instanceof z.ZodEnum ? "text" : "json";
}

/** The path in capitals. Each lane has its own variable: `ROTA_LANE_MAIN`. */
function variableOf([first = "", ...rest]: readonly string[]): string {
  return ["ROTA", first === "lanes" ? "lane" : first, ...rest].map(inCapitals).join("_");
}

/** `maxPerAgent` as `MAX_PER_AGENT`, `resultTTLSec` as `RESULT_TTL_SEC`. */
export function inCapitals(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3_$2")
    .replace(/[^A-Za-z0-9]/g, "_")
    .toUpperCase();
}

/** Converts a text to its kind. A text that does not fit stays a text, and the schema reports what it must be. */
export function fromText(text: string, kind: Option["kind"]): unknown {
  switch (kind) {
    case "text":
      return text;
    case "number":
      return /^[+-]?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "json":
      try {
        return JSON.parse(text);
      } catch {
        return text;
      }
  }
}

import type { Command } from "commander";
import type { Field, FieldTable, Shape } from "../../model/input/schema.ts";
import { jsonFlag, momentFlag, numberFlag, secondsSpanFlag, spanFlag, untilFlag } from "./flag-values.ts";

/** A field of an input that has a flag. */
interface FlagField {
  /** `--max-runs`. */
  readonly flag: string;
  /** Its name in the options that commander returns: `maxRuns`. */
  readonly option: string;
  /** The path of the field: `["retryPolicy", "maxRetries"]`. */
  readonly path: readonly string[];
  readonly field: Field & { readonly flag: string };
}

/** Adds a flag for each field that has one. In a change no field is required, and defaults do not apply. */
export function withInputOptions(
  command: Command,
  fields: FieldTable,
  { isChange = false }: { readonly isChange?: boolean } = {},
): Command {
  for (const { field } of flagFields(fields)) {
    const standard = isChange || field.default === undefined ? "" : ` (default: ${plain(field.default)})`;
    const text = `${flagText(field)}${standard}`;
    if (field.required && !isChange) command.requiredOption(field.flag, text);
    else command.option(field.flag, text);
  }
  return command;
}

/** The fields that the flags set. The server refuses wrong values, with its own messages. */
export function inputOfFlags(fields: FieldTable, flags: object, now: number): Record<string, unknown> {
  const given = flags as Readonly<Record<string, unknown>>;
  const input: Record<string, unknown> = {};
  for (const { flag, option, path, field } of flagFields(fields)) {
    const value = given[option];
    if (value === undefined) continue;
    const [name = "", nested] = path;
    const read = typeof value === "string" ? valueOfFlag(field.shape, value, { flag, now }) : value;
    input[name] = nested === undefined ? read : { ...(input[name] as object | undefined), [nested]: read };
  }
  return input;
}

/** The flag of each field whose name differs from it or that takes more than the field, for messages of the server. */
export function flagsOfFields(fields: FieldTable): Readonly<Record<string, string>> {
  const named = flagFields(fields).map(({ flag, path, field }) => {
    const form = formOf(field.shape);
    return [path.join("."), form === "" ? flag : `${flag}: ${form}`] as const;
  });
  return Object.fromEntries(named.filter(([field, flag]) => flag !== `--${field}`));
}

/** The fields with a flag, and those of objects in them. */
function flagFields(fields: FieldTable, path: readonly string[] = []): FlagField[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const here = [...path, name];
    if (field.shape.type === "fields") return flagFields(field.shape.fields, here);
    if (field.flag === undefined) return [];
    const [flag = ""] = field.flag.split(" ");
    const option = flag.slice(2).replaceAll(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
    return [{ flag, option, path: here, field: { ...field, flag: field.flag } }];
  });
}

/** The description of a field, as the command line writes it. */
function flagText({ shape, description = "" }: Field): string {
  // Giving the flag means true.
  const sentence = plain(description)
    .replace(/^True: /, "")
    .replace(/\.$/, "");
  const words = /^[A-Z][a-z ]/.test(sentence)
    ? `${sentence[0]?.toLowerCase()}${sentence.slice(1)}`
    : sentence;
  const form = shape.type === "time" ? `RFC 3339, ${formOf(shape)}` : formOf(shape);
  return form === "" ? words : `${words}; ${form}`;
}

function plain(markdown: string): string {
  return markdown.replaceAll("`", "");
}

/** What a flag takes besides, or in place of, what the field does. */
function formOf(shape: Shape): string {
  if (shape.type === "list") return "separated by commas";
  if (shape.type === "time") return "also a span from now like 10m";
  if (isSecondsOrTime(shape)) return "also a span from now like 30d";
  if (shape.type !== "integer") return "";
  if (shape.unit === "milliseconds") return "also a span like 30s";
  return shape.unit === "seconds" ? "also a span like 2h" : "";
}

function valueOfFlag(shape: Shape, text: string, { flag, now }: { flag: string; now: number }): unknown {
  switch (shape.type) {
    case "integer":
    case "number":
      if (shape.unit === "milliseconds") return spanFlag(text);
      return shape.unit === "seconds" ? secondsSpanFlag(text) : numberFlag(text);
    case "time":
      return momentFlag(text, now);
    case "object":
    case "variants":
    case "json":
      return jsonFlag(flag, text);
    case "list":
      return text.split(",").map((item) => item.trim());
    case "union":
      if (isSecondsOrTime(shape)) return untilFlag(text);
      return shape.of.some(({ type }) => type === "text") ? text : numberFlag(text);
    default:
      return text;
  }
}

function isSecondsOrTime(shape: Shape): boolean {
  return (
    shape.type === "union" &&
    shape.of.some((each) => each.type === "integer" && each.unit === "seconds since 1970")
  );
}

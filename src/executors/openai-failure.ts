import { type Fields, isObject } from "../model/input/field-checks.ts";
import { excerpt } from "./answer-text.ts";
import { HttpError } from "./errors.ts";

/**
 * The error in a part of a response; null if there is none. After a response has begun, a server can report a failure only in the
 * middle of it, with the status as a code, if any.
 */
export function failureIn(part: Fields): Error | null {
  const error = errorIn(part);
  if (error === undefined) return null;
  const message = `the model failed: ${excerpt(messageOf(error))}`;
  const code = isObject(error) ? error["code"] : undefined;
  const isStatus = Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599;
  return isStatus ? new HttpError(code as number, message) : new Error(message);
}

function errorIn(part: Fields): unknown {
  if (part["object"] === "error") return part;
  return part["error"] || undefined;
}

function messageOf(error: unknown): string {
  const said = isObject(error) ? (error["message"] ?? error["type"]) : error;
  return typeof said === "string" ? said : JSON.stringify(error);
}

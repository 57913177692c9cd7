import { isObject } from "../../model/input/field-checks.ts";
import type { Log } from "../../model/log.ts";
import type { Redactor } from "../../model/redactor.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A log that masks secrets, including those in lines of executors. */
export function redactedLog(log: Log, redactor: () => Redactor): Log {
  const at =
    (method: "debug" | "info" | "warn" | "error"): Log["info"] =>
    (fields, message) => {
      const current = redactor();
      if (current.isEmpty) log[method](fields, message);
      else log[method](redacted(fields, current), current.text(message));
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => redactedLog(log.child(redacted(fields, redactor())), redactor),
  };
}

function redacted(fields: Fields, redactor: Redactor): Fields {
  if (redactor.isEmpty || !isObject(fields)) return fields;
  const masked = redactor.json(fields);
  return Object.fromEntries(
    Object.entries(masked).map(([name, value]) => [
      name,
      value instanceof Error ? redactedError(value, redactor) : redactor.json(value),
    ]),
  );
}

function redactedError(error: Error, redactor: Redactor): Error {
  const message = redactor.text(String(error.message));
  const stack = redactor.text(String(error.stack ?? ""));
  if (message === error.message && stack === (error.stack ?? "")) return error;
  return Object.assign(new Error(message), { name: error.name, stack });
}

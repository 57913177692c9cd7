import { checkAgentId } from "../agent.ts";
import { checkCallbackUrl } from "../callback-url.ts";
import { isLaneName, LANE_NAME_FORM } from "../lane.ts";
import { PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NAMES, type PriorityName } from "../priority.ts";
import { checkSessionKey } from "../session-key.ts";
import {
  checkBoolean,
  checkFilledText,
  checkMoment,
  checkNumber,
  checkObject,
  checkText,
  type Fields,
  invalidField,
  type NumberRange,
} from "./field-checks.ts";
import { readInto } from "./read-fields.ts";
import type { ChangesOf, FieldTable, InputOf, Kind, NumberShape, ReadChangesOf, ReadOf } from "./schema.ts";
import { choiceFault, notChoice } from "./value-faults.ts";

/* The kinds of values that inputs have. Each describes a value and checks it. */

export function text(): Kind<string> {
  return { shape: { type: "text" }, read: checkText };
}

export function filledText(): Kind<string> {
  return { shape: { type: "text" }, read: checkFilledText };
}

/** A text of a certain form; `form` is the rest of "must be …". */
export function textLike(isValid: (text: string) => boolean, form: string): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const given = checkText(value, field);
      if (isValid(given)) return given;
      throw invalidField(field, `\`${field}\` must be ${form}`);
    },
  };
}

export function boolean(): Kind<boolean> {
  return { shape: { type: "boolean" }, read: checkBoolean };
}

export function number(range: NumberRange): Kind<number> {
  return { shape: numberShape(range), read: (value, field) => checkNumber(value, field, range) };
}

function numberShape({ min, max, integer = true, unit }: NumberRange): NumberShape {
  return { type: integer ? "integer" : "number", min, max, ...(unit === undefined ? {} : { unit }) };
}

export const TIMEOUT_MIN_MS = 1_000;
/** Unless the configuration sets another. */
export const TIMEOUT_MAX_MS = 600_000;

/** The longest time for an attempt. The configuration sets the limit. */
export function timeout(): Kind<number> {
  const unit = "milliseconds";
  return {
    shape: { type: "integer", min: TIMEOUT_MIN_MS, unit },
    read: (value, field, { limits: { timeoutMaxMs = TIMEOUT_MAX_MS } }) =>
      checkNumber(value, field, {
        min: TIMEOUT_MIN_MS,
        max: timeoutMaxMs,
        unit,
        maxOption: "timeouts.maxMs",
      }),
  };
}

export function choice<const Choice extends string>(choices: readonly Choice[]): Kind<Choice> {
  return {
    shape: { type: "choice", choices },
    read: (value, field) => {
      const fault = choiceFault(value, choices);
      if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
      return value as Choice;
    },
  };
}

/** A time; read as milliseconds since 1970. */
export function time(): Kind<string | Date, number> {
  return { shape: { type: "time" }, read: checkMoment };
}

/** An object with fields of the caller's own. */
export function anyObject(): Kind<Fields> {
  return { shape: { type: "object" }, read: checkObject };
}

/** Any JSON. Null is a value. */
export function json(): Kind<unknown> {
  return { shape: { type: "json" }, read: (value) => value };
}

/** An object with fields of its own. */
export function object<Table extends FieldTable>(fields: Table): Kind<InputOf<Table>, ReadOf<Table>> {
  return {
    shape: { type: "fields", fields },
    read: (value, field, reading) =>
      readInto({ fields }, checkObject(value, field), `${field}.`, reading) as ReadOf<Table>,
  };
}

/** An object in which null resets a field. */
export function changesObject<Table extends FieldTable>(
  fields: Table,
): Kind<ChangesOf<Table>, ReadChangesOf<Table>> {
  return {
    shape: { type: "fields", fields },
    read: (value, field, reading) => {
      const given = checkObject(value, field);
      return readInto({ fields, isChanges: true }, given, `${field}.`, reading) as ReadChangesOf<Table>;
    },
  };
}

/** The name or id of something in a filter. Refuses NUL: no database has one, and PostgreSQL refuses the query. */
export function name(what: string): Kind<string> {
  return textLike((given) => !given.includes("\0"), what);
}

export function agentId(): Kind<string> {
  return { shape: { type: "text" }, read: (value, field) => checkAgentId(checkText(value, field), field) };
}

export function sessionKey(): Kind<string> {
  return { shape: { type: "text" }, read: checkSessionKey };
}

export function callbackUrl(): Kind<string> {
  return { shape: { type: "text" }, read: checkCallbackUrl };
}

const LANE_FORM = `the name of a lane, ${LANE_NAME_FORM}`;

/** The lane of a task. An unknown name, even an impossible one, means `main`. */
export function anyLane(): Kind<string> {
  return textLike((lane) => lane.trim() !== "" && !/\p{Cc}/u.test(lane), LANE_FORM);
}

/** The lane of a setting, which is stored: it must be a valid name. */
export function laneName(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      if (isLaneName(value)) return value;
      throw invalidField(field, `\`${field}\` must be ${LANE_FORM}`);
    },
  };
}

const PRIORITY_RANGE = { min: PRIORITY_MIN, max: PRIORITY_MAX } as const;

/** An integer or a name; read as the integer. */
export function priority(): Kind<number | PriorityName, number> {
  const choices = Object.keys(PRIORITY_NAMES);
  return {
    shape: { type: "union", of: [numberShape(PRIORITY_RANGE), { type: "choice", choices }] },
    read: (value, field) => {
      if (typeof value === "string" && Object.hasOwn(PRIORITY_NAMES, value)) {
        return PRIORITY_NAMES[value as PriorityName];
      }
      if (typeof value === "number" && Number.isInteger(value)) {
        return checkNumber(value, field, PRIORITY_RANGE);
      }
      throw invalidField(
        field,
        `\`${field}\` must be an integer, lower first, or one of ${choices.join(", ")}${notChoice(value, choices)}`,
      );
    },
  };
}

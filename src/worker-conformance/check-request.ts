import type { Call } from "./attempts.ts";

type Body = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const isText: Check = (value) => typeof value === "string" && value !== "";
const isUuid: Check = (value) => typeof value === "string" && UUID.test(value);
const isCount: Check = (value) => Number.isInteger(value) && (value as number) >= 0;
const isBetween =
  (min: number, max: number): Check =>
  (value) =>
    typeof value === "number" && value >= min && value <= max;
const isRecord: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTextList: Check = (value) => Array.isArray(value) && value.length > 0 && value.every(isText);
const isAnything: Check = () => true;
const isOneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

interface Field {
  readonly check: Check;
  readonly says: string;
  readonly required?: true;
}

const REGISTER: Record<string, Field> = {
  name: { check: isText, says: "a text", required: true },
  instanceId: { check: isUuid, says: "a UUID" },
  agents: { check: isTextList, says: "a list of at least one agent", required: true },
  slots: { check: isBetween(1, 1_000), says: "a number from 1 to 1000", required: true },
  labels: { check: isRecord, says: "an object" },
  version: { check: isText, says: "a text" },
  runtime: { check: isText, says: "a text" },
  leaseMs: { check: isBetween(3_000, 120_000), says: "milliseconds from 3000 to 120000" },
  heartbeatMs: { check: isBetween(500, 120_000), says: "milliseconds from 500 on" },
};

const CLAIM: Record<string, Field> = {
  claimId: { check: isUuid, says: "a UUID", required: true },
  max: { check: isBetween(1, Number.MAX_SAFE_INTEGER), says: "a number from 1 on", required: true },
  waitS: { check: isBetween(0, 25), says: "seconds from 0 to 25" },
  agents: { check: isTextList, says: "a list of agents" },
};

const HEARTBEAT_ATTEMPT: Record<string, Field> = {
  attemptToken: { check: isText, says: "a token from a claim", required: true },
  progress: { check: isAnything, says: "any JSON" },
  usage: { check: isRecord, says: "an object" },
  log: { check: Array.isArray, says: "a list" },
  messagesAfter: { check: isCount, says: "a number from 0 on" },
};

const FINISH_ATTEMPT: Record<string, Field> = {
  attemptToken: { check: isText, says: "a token from a claim", required: true },
  outcome: {
    check: isOneOf("done", "failed", "released"),
    says: "`done`, `failed` or `released`",
    required: true,
  },
  result: { check: isAnything, says: "any JSON" },
  error: { check: isText, says: "a text" },
  retryable: { check: isOneOf(true, false), says: "true or false" },
  retryAfterMs: { check: isCount, says: "milliseconds" },
  usage: { check: isRecord, says: "an object" },
};

/** What is wrong with the body of a request, one sentence each. */
export function faultsOf(call: Call, body: Body): string[] {
  switch (call) {
    case "register":
      return faultsIn(body, REGISTER);
    case "claim":
      return faultsIn(body, CLAIM);
    case "heartbeat":
      return [
        ...faultsIn(body, { attempts: LIST, freeSlots: { check: isCount, says: "a number" } }),
        ...faultsInEach(body["attempts"], HEARTBEAT_ATTEMPT),
      ];
    case "finish":
      return [...faultsIn(body, { attempts: LIST }), ...faultsInEach(body["attempts"], FINISH_ATTEMPT)];
    default:
      return [];
  }
}

const LIST: Field = { check: Array.isArray, says: "a list", required: true };

function faultsInEach(attempts: unknown, fields: Record<string, Field>): string[] {
  if (!Array.isArray(attempts)) return [];
  return attempts.flatMap((attempt, index) =>
    isRecord(attempt)
      ? faultsIn(attempt as Body, fields, `attempts[${index}].`)
      : [`\`attempts[${index}]\` is no object`],
  );
}

function faultsIn(body: Body, fields: Record<string, Field>, path = ""): string[] {
  const unknown = Object.keys(body).filter((name) => !Object.hasOwn(fields, name));
  const wrong = Object.entries(fields).filter(([name, { check, required }]) => {
    const value = body[name] ?? undefined;
    return value === undefined ? required === true : !check(value);
  });
  return [
    ...unknown.map((name) => `\`${path}${name}\` is no field of the protocol`),
    ...wrong.map(([name, { says }]) => `\`${path}${name}\` must be ${says}, not ${shown(body[name])}`),
  ];
}

function shown(value: unknown): string {
  return value === undefined ? "left out" : (JSON.stringify(value) ?? String(value)).slice(0, 60);
}

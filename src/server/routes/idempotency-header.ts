import { invalidField, isObject } from "../../model/input/field-checks.ts";
import { keepOwn } from "../../model/text/own-json.ts";

/** The body with the key of the header. What is not an object is passed on, and refused later. */
export function withKey(body: unknown, header: string | string[]): unknown {
  if (!isObject(body)) return body;
  const key = String(header);
  if (body["idempotencyKey"] === undefined || body["idempotencyKey"] === null)
    return keepOwn(body, { ...body, idempotencyKey: key });
  if (body["idempotencyKey"] === key) return body;
  throw invalidField(
    "idempotencyKey",
    "`idempotencyKey` and the header `Idempotency-Key` differ: write one of them, or the same in both",
  );
}

/** Refuses the header on routes without idempotency keys: ignoring it would promise what is not kept. `instead`: what to do. */
export function refuseKey(header: string | string[] | undefined, instead: string): void {
  if (header === undefined) return;
  throw invalidField("Idempotency-Key", `the header \`Idempotency-Key\` is for one task: ${instead}`);
}

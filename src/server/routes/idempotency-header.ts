import { invalidField, isObject } from "../../model/input/field-checks.ts";
import { keepOwn } from "../../model/text/own-json.ts";

/** What was asked for, with the key that came as a header. What is no object is refused as it is. */
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

/** Where there is no key, one that is passed over would promise what is not kept. `instead` says what to write. */
export function refuseKey(header: string | string[] | undefined, instead: string): void {
  if (header === undefined) return;
  throw invalidField("Idempotency-Key", `the header \`Idempotency-Key\` is for one task: ${instead}`);
}

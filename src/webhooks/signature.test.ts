import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { webhookKey } from "../model/webhook-secret.ts";
import { signature } from "./signature.ts";

const BODY = JSON.stringify({ taskId: "tsk_1", result: "grüße 🎈" });

function signed(secret: string) {
  const key = webhookKey(secret);
  if (key === null) throw new Error("no key");
  const timestamp = Math.floor(Date.now() / 1_000);
  const content = { id: "whd_1_2", timestamp, body: BODY };
  return {
    headers: {
      "webhook-id": content.id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signature([key], content) ?? "",
    },
  };
}

test.each(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])(
  "the library of Standard Webhooks verifies what %s signed",
  (secret) => {
    expect(new Webhook(secret).verify(BODY, signed(secret).headers)).toEqual(JSON.parse(BODY));
  },
);

test("it verifies what a text signed that is no base64", () => {
  const secret = "correct horse battery staple";
  expect(() => new Webhook(secret, { format: "raw" }).verify(BODY, signed(secret).headers)).not.toThrow();
});

test("it refuses another body, another id and another secret", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const { headers } = signed(secret);
  const webhook = new Webhook(secret);
  expect(() => webhook.verify(BODY.replace("tsk_1", "tsk_2"), headers)).toThrow();
  expect(() => webhook.verify(BODY, { ...headers, "webhook-id": "whd_1_3" })).toThrow();
  expect(() => new Webhook("whsec_c2VjcmV0").verify(BODY, headers)).toThrow();
});

test("with two keys a receiver verifies it that has one of them, and without a key there is none", () => {
  const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const timestamp = Math.floor(Date.now() / 1_000);
  const content = { id: "whd_1_2", timestamp, body: BODY };
  const headers = {
    "webhook-id": content.id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signature(keys, content) ?? "",
  };
  for (const key of keys) {
    expect(() => new Webhook(`whsec_${key.toString("base64")}`).verify(BODY, headers)).not.toThrow();
  }
  expect(signature([], content)).toBeNull();
});

import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import type { WebhookSecretRecord } from "../../storage/storage.ts";
import { TenantSigner } from "./tenant-signer.ts";

const CONTENT = { id: "whd_1_2", timestamp: 5, body: "{}" };
const NOW = 1_000;
const CONFIGURED = Buffer.alloc(32, 1);
const OWN = Buffer.alloc(32, 2);

function by(...keys: Buffer[]): string {
  return keys
    .map((key) => `v1,${createHmac("sha256", key).update("whd_1_2.5.{}").digest("base64")}`)
    .join(" ");
}

function signerWith(...secrets: Omit<WebhookSecretRecord, "tenant">[]): TenantSigner {
  return new TenantSigner({
    secretsOf: (tenant) => secrets.map((secret) => ({ tenant, ...secret })),
    configuredKey: () => CONFIGURED,
    now: () => NOW,
  });
}

const own = { secret: `whsec_${OWN.toString("base64")}`, expiresAt: null };

test("a tenant from before the secrets of tenants is signed for by the configured one until that expires", () => {
  const legacy = { secret: null, expiresAt: NOW + 1 };
  expect(signerWith(legacy).sign("ten_1", CONTENT)).toBe(by(CONFIGURED));
  expect(signerWith({ ...legacy, expiresAt: NOW }).sign("ten_1", CONTENT)).toBeNull();
  expect(signerWith(own, legacy).sign("ten_1", CONTENT)).toBe(by(OWN, CONFIGURED));
});

test("where a tenant says where to send, the configured secret signs for the default tenant alone", () => {
  const ownSecretOnly = { ownSecretOnly: true };
  const legacy = { secret: null, expiresAt: NOW + 1 };
  expect(signerWith(legacy).sign("ten_1", CONTENT, ownSecretOnly)).toBeNull();
  expect(signerWith(own, legacy).sign("ten_1", CONTENT, ownSecretOnly)).toBe(by(OWN));
  expect(signerWith().sign("default", CONTENT, ownSecretOnly)).toBe(by(CONFIGURED));
});

test("a start warns while the configured secret still signs for such tenants, and never of others", () => {
  const warnings = (...secrets: Parameters<typeof signerWith>) => {
    const log = new RecordingLog();
    signerWith(...secrets).warnOfConfigured(["ten_1"], log);
    return log.lines.map(({ fields }) => fields);
  };
  const legacy = { secret: null, expiresAt: NOW + 1 };
  expect(warnings(legacy)).toEqual([{ tenants: 1, until: "1970-01-01T00:00:01.001Z" }]);
  expect(warnings({ ...legacy, expiresAt: NOW })).toEqual([]);
  expect(warnings(own, legacy)).toEqual([]);
  expect(warnings()).toEqual([]);
});

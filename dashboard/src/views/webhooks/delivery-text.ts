import type { Delivery } from "../../../../src/client/index.ts";
import type { Glyph } from "../../parts/state.tsx";

export const DELIVERY_SHOWN: Readonly<Record<Delivery["status"], readonly [Glyph, string]>> = {
  pending: ["retry", "Pending"],
  delivered: ["done", "Delivered"],
  failed: ["failed", "Failed"],
};

const WAITS: Readonly<Record<NonNullable<Delivery["waitsFor"]>, string>> = {
  slot: "waits for a free slot",
  host: "waits for its host, which is new or fails",
  tenant_disabled: "waits until the tenant is enabled",
};

/** The answer of the other side, or what the delivery waits for. */
export function answerOf({ status, responseStatus, error, waitsFor }: Delivery): string {
  if (status === "pending" && waitsFor !== undefined) return WAITS[waitsFor];
  if (error !== undefined) return error;
  return responseStatus === undefined ? "not tried yet" : `HTTP ${responseStatus}`;
}

/** The target without its query, which may contain a secret. */
export function hostOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : parsed.host + parsed.pathname;
}

import type { TenantLimits } from "../../../../src/client/index.ts";
import { formatCount } from "../../parts/format.ts";

/** The limits of a tenant, in the order of forms, with their words. */
export const TENANT_LIMITS = [
  ["maxQueued", "Waiting tasks", "waiting"],
  ["maxInflight", "Running tasks", "running"],
  ["maxSchedules", "Schedules", "schedules"],
  ["maxSessions", "Sessions", "sessions"],
  ["maxStreams", "Streams", "streams"],
  ["maxAgents", "Agents", "agents"],
  ["maxStoredBytes", "Stored bytes", "stored"],
] as const satisfies readonly (readonly [keyof TenantLimits, string, string])[];

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `1.5 GiB`. */
export function sayBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1_024 ** power;
  return `${value < 10 && value % 1 !== 0 ? value.toFixed(1) : Math.round(value)}\u00a0${UNITS[power]}`;
}

export function sayLimit(name: keyof TenantLimits, value: number): string {
  return name === "maxStoredBytes" ? sayBytes(value) : formatCount(value);
}

/** `50 running, 1 000 schedules`: only those that are set. */
export function sayLimits(limits: TenantLimits): string {
  return TENANT_LIMITS.flatMap(([name, , word]) => {
    const value = limits[name];
    return value === null ? [] : [`${sayLimit(name, value)} ${word}`];
  }).join(", ");
}

import type { Tenant } from "../../interface/tenants.ts";
import { oneLine } from "../terminal/display-text.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { shownMoment } from "./times.ts";

/** Tenants as a table, in the order given. */
export function tenantsTable(
  tenants: readonly Tenant[],
  { width }: { readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "TENANT" },
      { title: "NAME", shrinksTo: 12 },
      { title: "STATE" },
      { title: "MAX WAITING", align: "right" },
      { title: "MAX RUNNING", align: "right" },
      { title: "MAX SCHEDULES", align: "right" },
      { title: "MAX STREAMS", align: "right" },
    ],
    tenants.map((tenant) => [
      oneLine(tenant.id),
      oneLine(tenant.name),
      stateOf(tenant),
      String(tenant.limits.maxQueued ?? ""),
      String(tenant.limits.maxInflight ?? ""),
      String(tenant.limits.maxSchedules ?? ""),
      String(tenant.limits.maxStreams ?? ""),
    ]),
    { width },
  );
}

/** All fields of a tenant, for people. */
export function tenantSheet(tenant: Tenant): string[] {
  const { id, name, limits, createdAt } = tenant;
  const shown = (limit: number | null) => (limit === null ? undefined : String(limit));
  return sheetLines([
    ["tenant", oneLine(id)],
    ["name", oneLine(name)],
    ["state", stateOf(tenant)],
    ["max waiting", shown(limits.maxQueued)],
    ["max running", shown(limits.maxInflight)],
    ["max schedules", shown(limits.maxSchedules)],
    ["max sessions", shown(limits.maxSessions)],
    ["max streams", shown(limits.maxStreams)],
    ["max agents", shown(limits.maxAgents)],
    ["stored bytes", storedText(tenant)],
    ["created", shownMoment(createdAt, Date.now())],
  ]);
}

function storedText({ storedBytes, limits }: Tenant): string | undefined {
  return storedBytes === null ? undefined : `${storedBytes} of ${limits.maxStoredBytes}`;
}

function stateOf({ disabled }: Tenant): string {
  return disabled ? "disabled" : "enabled";
}

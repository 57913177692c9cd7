import { DEFAULT_MAX_LANE_SHARE } from "../../src/model/lane.ts";
import { check, type Finding } from "../chaos/checks/index.ts";
import { limits } from "../chaos/checks/limits.ts";
import type { Counted, History } from "../chaos/history.ts";
import { Ledger } from "../chaos/ledger.ts";
import { readCounted } from "../chaos/read-counted.ts";
import type { Climate } from "./climate.ts";
import type { SimulatedProcess } from "./process.ts";
import { readHistory } from "./read-history.ts";
import { GUESTS, limitsIn } from "./settings.ts";
import type { World } from "./world.ts";

/** A tenant besides the one that is always there, and what its clients know. */
export interface Guest {
  readonly id: string;
  /** The agent that works only for this tenant. */
  readonly agent: string;
  readonly maxInflight: number;
  readonly ledger: Ledger;
}

export async function prepareGuests(world: World): Promise<Guest[]> {
  const process = await world.anyOpen();
  const guests: Guest[] = [];
  for (const [agent, bounds] of Object.entries(GUESTS)) {
    const { id } = await world.answer(process, (rota) =>
      rota.tenants.create({ name: `the tenant of ${agent}`, limits: bounds }),
    );
    guests.push({ id, agent, maxInflight: bounds.maxInflight, ledger: new Ledger() });
  }
  return guests;
}

/** What each guest sees at the end. */
export async function readGuests(
  world: World,
  process: SimulatedProcess,
): Promise<readonly [Guest, GuestHistory][]> {
  const seen: [Guest, GuestHistory][] = [];
  for (const guest of world.guests)
    seen.push([guest, await world.answer(process, (rota) => readHistory(rota.tenant(guest.id)))]);
  return seen;
}

/** What the statistics over time say of each guest, once all has been counted. */
export async function countGuests(world: World, process: SimulatedProcess): Promise<Counted[]> {
  const counted: Counted[] = [];
  for (const [{ id }, { events }] of world.seenByGuests)
    counted.push(await world.answer(process, (rota) => readCounted(rota.tenant(id), id, events)));
  return counted;
}

type GuestHistory = Pick<History, "events" | "tasks" | "runs" | "schedules">;

/** The history of each tenant by itself, and the limits over all of them. `calls` are those of all tenants. */
export function checkGuests(history: History, { calls }: Pick<History, "calls">, world: World): Finding[] {
  const findings: Finding[] = [];
  for (const [{ id, ledger, agent }, seen] of world.seenByGuests) {
    const own: History = {
      ...history,
      ...seen,
      calls: calls.filter(({ taskId }) => seen.tasks.has(taskId)),
      acknowledged: ledger.acknowledged,
      retriesAsked: ledger.retriesAsked,
      followed: [],
      bulks: [],
      counted: world.countedOfGuests.filter(({ tenantId }) => tenantId === id),
      doctor: { ok: true, checks: [] },
    };
    findings.push(...check(own).map(({ promise, said }) => ({ promise, said: `${agent}: ${said}` })));
  }
  const histories = [history, ...world.seenByGuests.map(([, seen]) => seen)];
  const merged: History = {
    ...history,
    limits: limitsOfAll(world, world.worst),
    calls,
    events: histories.flatMap(({ events }) => events).toSorted((a, b) => a.seq - b.seq),
    tasks: new Map(histories.flatMap(({ tasks }) => [...tasks])),
  };
  findings.push(...limits(merged).map((said) => ({ promise: "no limit is exceeded", said })));
  return findings;
}

function limitsOfAll({ guests, witness }: World, climate: Climate): History["limits"] {
  const tenants = Object.fromEntries(guests.map(({ id, maxInflight }) => [id, { maxInflight }]));
  const ids = guests.map(({ id }) => id);
  // The default tenant is never disabled.
  const laneShare = { max: DEFAULT_MAX_LANE_SHARE, holdsAt: (seq: number) => witness.wasEnabled(ids, seq) };
  return { ...limitsIn(climate), tenants, laneShare };
}

import { SESSIONS } from "../settings.ts";
import type { Tenancy } from "../tenancy.ts";
import { Batcher } from "./batcher.ts";
import type { Client, Surroundings } from "./client.ts";
import { Editor } from "./editor.ts";
import { LocalSubmitter } from "./local-submitter.ts";
import { Meddler } from "./meddler.ts";
import { Planner } from "./planner.ts";
import { Ponderer } from "./ponderer.ts";
import { Resender } from "./resender.ts";
import { Snooper } from "./snooper.ts";
import { Submitter } from "./submitter.ts";
import { Talker } from "./talker.ts";

export interface ClientsParams extends Omit<Surroundings, "ledger" | "key"> {
  readonly tenancies: readonly Tenancy[];
  /** The longest that the longest work takes. */
  readonly ponderMs: number;
}

/** Everybody who uses Rota: all kinds of users for the first tenant, and a few for each of the others. */
export function makeClients({ tenancies, ponderMs, ...shared }: ClientsParams): Client[] {
  return tenancies.flatMap(({ name, key, ledger }, index) => {
    const chance = shared.chance.fork(name);
    const surroundings: Surroundings = { ...shared, chance, key, ledger };
    const others = tenancies.filter((other) => other.name !== name).map((other) => other.ledger);
    const everywhere = [
      new Submitter({ ...surroundings, chance: chance.fork("one") }),
      new Meddler(surroundings),
      new Snooper(others, surroundings),
    ];
    return index === 0
      ? [...everywhere, ...manyUsers(ponderMs, surroundings)]
      : [...everywhere, new Planner(2, surroundings), new Talker("in-order", surroundings)];
  });
}

function manyUsers(ponderMs: number, surroundings: Surroundings): Client[] {
  return [
    new Submitter({ ...surroundings, chance: surroundings.chance.fork("another") }),
    new LocalSubmitter(surroundings),
    new Batcher(surroundings),
    new Resender(surroundings),
    new Planner(5, surroundings),
    new Editor(surroundings),
    new Ponderer(ponderMs, surroundings),
    ...Object.keys(SESSIONS).map((key) => new Talker(key, surroundings)),
  ];
}

import { SESSIONS } from "../settings.ts";
import type { Tenancy } from "../tenancy.ts";
import { Batcher } from "./batcher.ts";
import type { Client, ClientDependencies } from "./client.ts";
import { Editor } from "./editor.ts";
import { LocalSubmitter } from "./local-submitter.ts";
import { Meddler } from "./meddler.ts";
import { Planner } from "./planner.ts";
import { Ponderer } from "./ponderer.ts";
import { RemoteSubmitter } from "./remote-submitter.ts";
import { Resender } from "./resender.ts";
import { Snooper } from "./snooper.ts";
import { Submitter } from "./submitter.ts";
import { Talker } from "./talker.ts";

export interface ClientsParams extends Omit<ClientDependencies, "ledger" | "key"> {
  readonly tenancies: readonly Tenancy[];
  /** The longest that the longest work takes. */
  readonly ponderMs: number;
}

/** All clients: every kind for the first tenant, and a few for each of the others. */
export function makeClients({ tenancies, ponderMs, ...shared }: ClientsParams): Client[] {
  return tenancies.flatMap(({ name, key, ledger }, index) => {
    const chance = shared.chance.fork(name);
    const dependencies: ClientDependencies = { ...shared, chance, key, ledger };
    const others = tenancies.filter((other) => other.name !== name).map((other) => other.ledger);
    const everywhere = [
      new Submitter({ ...dependencies, chance: chance.fork("one") }),
      new Meddler(dependencies),
      new Snooper(others, dependencies),
    ];
    return index === 0
      ? [...everywhere, ...manyUsers(ponderMs, dependencies)]
      : [...everywhere, new Planner(2, dependencies), new Talker("in-order", dependencies)];
  });
}

function manyUsers(ponderMs: number, dependencies: ClientDependencies): Client[] {
  return [
    new Submitter({ ...dependencies, chance: dependencies.chance.fork("another") }),
    new LocalSubmitter(dependencies),
    new RemoteSubmitter(ponderMs, dependencies),
    new Batcher(dependencies),
    new Resender(dependencies),
    new Planner(5, dependencies),
    new Editor(dependencies),
    new Ponderer(ponderMs, dependencies),
    ...Object.keys(SESSIONS).map((key) => new Talker(key, dependencies)),
  ];
}

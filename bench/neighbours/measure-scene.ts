import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findFreePort } from "../../test/postgres/server.ts";
import { inPlace, type NewPlace } from "../place.ts";
import type { AttackName } from "./attack-names.ts";
import type { AttackerOrders } from "./attacker-program.ts";
import type { FloodCount } from "./flood.ts";
import { NodeProcess } from "./node-process.ts";
import { Program } from "./program.ts";
import type { NeighbourSizes } from "./sizes.ts";
import { makeTenants } from "./tenants.ts";
import type { Scene } from "./verdict.ts";
import type { VictimOrders } from "./victim-program.ts";
import type { VictimReport } from "./victim-watch.ts";

export interface SceneParams {
  /** Null: the victim is alone. */
  readonly attack: AttackName | null;
  readonly sizes: NeighbourSizes;
  /** Of the scene's own. */
  readonly folder: string;
}

/** The defaults, but for the loopback addresses that agents and receivers have here. */
const CONFIG = { webhooks: { allow: ["127.0.0.0/8"] }, log: { level: "warn" } };

/** A node of its own on an empty storage; the attack begins as soon as the victim is warm. */
export function measureScene(newPlace: NewPlace, { attack, sizes, folder }: SceneParams): Promise<Scene> {
  return inPlace(newPlace, async (place) => {
    const keys = await makeTenants(place.url, { tasks: attack === "reads" ? sizes.storedTasks : 0 });
    await place.settle();
    const configFile = join(folder, "rota.config.json");
    await writeFile(configFile, JSON.stringify(CONFIG));
    const node = new NodeProcess({ folder, port: await findFreePort(), storage: place.url, configFile });
    const programs: Program[] = [];
    const start = (name: string, orders: AttackerOrders | VictimOrders) => {
      const program = new Program(name, orders);
      programs.push(program);
      return program;
    };
    try {
      await node.start();
      const { url } = node;
      const attacker =
        attack === null ? null : start("attacker-program.ts", { attack, url, key: keys.attacker, sizes });
      await attacker?.hear();
      const victim = start("victim-program.ts", { url, key: keys.victim, windowSec: sizes.windowSec });
      await victim.hear();
      attacker?.goOn();
      victim.goOn();
      const [report, counted] = await Promise.all([
        victim.hear<VictimReport>(),
        attacker?.hear<FloodCount>() ?? null,
      ]);
      if (attack === "memory") {
        await node.killAndRestart();
        await delay(sizes.afterRestartSec * 1_000);
      }
      const { deaths, peakRssMib } = node;
      return { name: attack ?? "quiet", victim: report, attacker: counted, deaths, peakRssMib };
    } finally {
      await Promise.all(programs.map((program) => program.end()));
      await node.stop();
    }
  });
}

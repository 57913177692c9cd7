import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findFreePort } from "../../test/postgres/server.ts";
import { type NewStorage, withStorage } from "../empty-storage.ts";
import type { AttackName } from "./attack-names.ts";
import type { AttackerOrders } from "./attacker-program.ts";
import { type FloodCount, noRequests } from "./flood.ts";
import { NodeProcess } from "./node-process.ts";
import { Program } from "./program.ts";
import type { NeighbourSizes } from "./sizes.ts";
import { makeTenants, type TenantKeys } from "./tenants.ts";
import type { Scene } from "./verdict.ts";
import type { VictimOrders } from "./victim-program.ts";
import { failedReport, type VictimReport } from "./victim-watch.ts";

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
export function measureScene(newStorage: NewStorage, { attack, sizes, folder }: SceneParams): Promise<Scene> {
  return withStorage(newStorage, async (target) => {
    const keys = await makeTenants(target.url, { tasks: attack === "reads" ? sizes.storedTasks : 0 });
    await target.settle();
    const configFile = join(folder, "rota.config.json");
    await writeFile(configFile, JSON.stringify(CONFIG));
    const node = new NodeProcess({ folder, port: await findFreePort(), storage: target.url, configFile });
    try {
      await node.start();
      const seen = await play(node.url, keys, { attack, sizes });
      if (attack === "memory") {
        await node.killAndRestart();
        await delay(sizes.afterRestartSec * 1_000);
      }
      const { deaths, peakRssMib } = node;
      return { name: attack ?? "quiet", ...seen, deaths, peakRssMib };
    } finally {
      await node.stop();
    }
  });
}

/** The attacker prepares, the victim warms up, and then both begin. */
async function play(
  url: string,
  keys: TenantKeys,
  { attack, sizes }: Pick<SceneParams, "attack" | "sizes">,
): Promise<Pick<Scene, "victim" | "attacker">> {
  const programs: Program[] = [];
  const start = (name: string, orders: AttackerOrders | VictimOrders) => {
    const program = new Program(name, orders);
    programs.push(program);
    return program;
  };
  try {
    const attacker =
      attack === null ? null : start("attacker-program.ts", { attack, url, key: keys.attacker, sizes });
    await attacker?.receive();
    const victim = start("victim-program.ts", { url, key: keys.victim, windowSec: sizes.windowSec });
    await victim.receive();
    attacker?.goOn();
    victim.goOn();
    const [report, counted] = await Promise.all([
      victim.receive<VictimReport>(),
      attacker?.receive<FloodCount>() ?? null,
    ]);
    return { victim: report, attacker: counted };
  } catch (error) {
    // A node that is dead or stalled for minutes is a result, too.
    if (attack === null) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return { victim: failedReport(reason), attacker: noRequests() };
  } finally {
    await Promise.all(programs.map((program) => program.end()));
  }
}

import type { Mishap } from "./climate.ts";
import type { SimulatedProcess } from "./process.ts";
import type { World } from "./world.ts";

/** Shorter and longer than a lease. */
const LASTS_MS = { least: 200, most: 35_000 } as const;
const JUMP_MS = 90_000;

/** Lets things go wrong with processes, one after the other, until the weather clears up. */
export function startMishaps(world: World): void {
  const chance = world.chance.fork("mishaps");
  const next = () => {
    const { mishapEveryMs, mishaps } = world.climate;
    if (mishaps.length === 0) return;
    world.outside.plan(chance.between(100, mishapEveryMs), "something goes wrong", () => {
      const { mishaps: possible } = world.climate;
      if (possible.length === 0) return;
      const [process] = chance.shuffle(world.processes);
      if (process !== undefined) befall(chance.pick(possible), process);
      next();
    });
  };
  next();

  function befall(mishap: Mishap, process: SimulatedProcess): void {
    const lastsMs = chance.between(LASTS_MS.least, LASTS_MS.most);
    switch (mishap) {
      case "crash":
        process.crash();
        return world.startAnother(chance.between(100, 10_000));
      case "leave":
        process.leave();
        return world.startAnother(chance.between(100, 10_000));
      case "pause":
        return process.pause(lastsMs);
      case "cut":
        return process.cut(lastsMs);
      case "jump":
        return process.jump(chance.between(-JUMP_MS, JUMP_MS));
      case "outage":
        for (const each of world.processes) each.cut(lastsMs);
        return;
      case "strike":
        world.agents.strike(chance.pick(["fails", "hangs"]));
        world.outside.plan(lastsMs / 4, "agents work again", () => world.agents.strike(null));
    }
  }
}

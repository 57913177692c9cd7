import type { Mishap } from "./climate.ts";
import type { SimulatedProcess } from "./process.ts";
import type { World } from "./world.ts";

/** Shorter than a lease, and longer. */
const SHORT_MS = { least: 200, most: 6_000 } as const;
const LONG_MS = { least: 14_000, most: 30_000 } as const;
const JUMP_MS = 90_000;
/** How far off the storage's clock may be set. */
const RESET_MS = { least: -40_000, most: 70_000 } as const;

/** Parts of the storage that may fail by themselves. */
const PARTS = ["nodes", "tasks", "events", "schedules", "deliveries", "now"] as const;

/** What processes ask of the storage by themselves, again and again. */
const OPERATIONS = [
  "now",
  "nodes.register",
  "nodes.heartbeat",
  "nodes.list",
  "tasks.finishAndClaim",
  "tasks.promoteDue",
  "tasks.nextDueAt",
  "tasks.release",
  "tasks.rescue",
  "schedules.nextDueAt",
  "schedules.due",
  "schedules.fire",
  "deliveries.claim",
  "deliveries.settle",
  "events.read",
] as const;

/** Lets things go wrong with processes, one after the other, until the weather clears up. */
export function startMishaps(world: World): void {
  const chance = world.chance.fork("mishaps");
  const next = () => {
    const { mishapEveryMs, mishaps } = world.climate;
    if (mishaps.length === 0) return;
    world.outside.plan(chance.between(100, mishapEveryMs), "something goes wrong", () => {
      const { mishaps: possible } = world.climate;
      if (possible.length === 0) return;
      const [process, another = process] = chance.shuffle(world.processes);
      if (process !== undefined && another !== undefined) befall(chance.pick(possible), process, another);
      next();
    });
  };
  next();

  function befall(mishap: Mishap, process: SimulatedProcess, another: SimulatedProcess): void {
    const { least, most } = chance.oneIn(2) ? SHORT_MS : LONG_MS;
    const lastsMs = chance.between(least, most);
    const deeds: Record<Mishap, () => void> = {
      crash: () => {
        process.crash();
        world.startAnother(chance.between(100, 10_000));
      },
      // One is silent for nearly a lease, and another learns of it and then stands still: what it knows is no longer so.
      doubt: () => {
        process.ail("nodes.heartbeat", chance.between(4_500, 6_500));
        world.outside.plan(chance.between(1_000, 4_000), "the next list of nodes is to stall", () =>
          another.stall("nodes.list", chance.between(10_500, 16_000)),
        );
      },
      leave: () => {
        process.leave();
        world.startAnother(chance.between(100, 10_000));
      },
      pause: () => process.pause(lastsMs),
      stall: () => process.stall(chance.pick(OPERATIONS), lastsMs),
      cut: () => process.cut(lastsMs),
      ail: () => {
        const part = chance.pick(PARTS);
        for (const each of chance.oneIn(2) ? world.processes : [process]) each.ail(part, lastsMs);
      },
      jump: () => process.jump(chance.between(-JUMP_MS, JUMP_MS)),
      outage: () => {
        for (const each of world.processes) each.cut(lastsMs);
      },
      reset: () => world.setClock(chance.between(RESET_MS.least, RESET_MS.most)),
      strike: () => {
        world.agents.strike(chance.pick(["fails", "hangs"]));
        world.outside.plan(lastsMs / 4, "agents work again", () => world.agents.strike(null));
      },
    };
    deeds[mishap]();
  }
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStorage } from "../empty-storage.ts";
import { measureScene } from "./measure-scene.ts";
import { QUICK_NEIGHBOURS } from "./sizes.ts";
import { valuesOf } from "./verdict.ts";

test("a scene is played on a real node, from the tenants to the figures", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rota-neighbours-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // Longer than the two seconds between the due times of the victim's schedule.
  const sizes = { ...QUICK_NEIGHBOURS, windowSec: 4, storedTasks: 1_000 };
  const scene = await measureScene(sqliteStorage({ folder }), { attack: "reads", sizes, folder });
  expect(scene).toMatchObject({ name: "reads", deaths: 0, victim: { refused: 0, refusal: null } });
  expect(scene.attacker?.accepted).toBeGreaterThan(10);
  expect(scene.attacker?.unanswered).toBe(0);
  const figures = Object.keys(valuesOf(scene)).filter((column) => column !== "memory");
  expect(figures).toEqual([
    ...["submit p50", "submit p99", "list p50", "list p99", "start p99", "schedule late", "callback p99"],
    ...["refused", "deaths"],
  ]);
}, 120_000);

import { afterAll, beforeAll, describe } from "vitest";
import { administrationTests } from "./administration.ts";
import { frameTests } from "./frame.ts";
import { liveTests } from "./live.ts";
import { signInTests } from "./sign-in.ts";
import { openWorld, SETUP_MS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// One browser and one server for all of them. What takes a third of the time each is in views.test.ts and work.test.ts: they
// run side by side.
describe("signing in:", () => signInTests(() => world));
describe("around every page:", () => frameTests(() => world));
describe("live data:", () => liveTests(() => world));
describe("administration:", () => administrationTests(() => world));

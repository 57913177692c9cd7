import { afterAll, beforeAll, describe } from "vitest";
import { administrationTests } from "./administration.ts";
import { frameTests } from "./frame.ts";
import { liveTests } from "./live.ts";
import { signInTests } from "./sign-in.ts";
import { taskTests } from "./task.ts";
import { tasksTests } from "./tasks.ts";
import { openWorld, SETUP_MS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// One browser and one server for all of them.
describe("signing in:", () => signInTests(() => world));
describe("around every page:", () => frameTests(() => world));
describe("the list of tasks:", () => tasksTests(() => world));
describe("the page of a task:", () => taskTests(() => world));
describe("live data:", () => liveTests(() => world));
// Here and not in views.test.ts, which takes as long.
describe("administration:", () => administrationTests(() => world));

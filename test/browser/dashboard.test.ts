import { afterAll, beforeAll, describe } from "vitest";
import { frameTests } from "./frame.ts";
import { lanesTests } from "./lanes.ts";
import { liveTests } from "./live.ts";
import { schedulesTests } from "./schedules.ts";
import { sessionsTests } from "./sessions.ts";
import { signInTests } from "./sign-in.ts";
import { taskTests } from "./task.ts";
import { tasksTests } from "./tasks.ts";
import { openWorld, type World } from "./world.ts";

/** Installing a browser where there is none, and building the dashboard, both once. */
const SETUP_MS = 400_000;

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// One browser and one server for all of them: a view has a file of its own and a line here.
describe("signing in:", () => signInTests(() => world));
describe("around every page:", () => frameTests(() => world));
describe("the list of tasks:", () => tasksTests(() => world));
describe("the page of a task:", () => taskTests(() => world));
describe("sessions:", () => sessionsTests(() => world));
describe("lanes:", () => lanesTests(() => world));
describe("schedules:", () => schedulesTests(() => world));
describe("live data:", () => liveTests(() => world));

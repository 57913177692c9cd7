import { afterAll, beforeAll, describe } from "vitest";
import { lanesTests } from "./lanes.ts";
import { overviewTests } from "./overview.ts";
import { schedulesTests } from "./schedules.ts";
import { sessionsTests } from "./sessions.ts";
import { openWorld, SETUP_MS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// Beside dashboard.test.ts, with a browser and a server of its own: a view has a file and a line here or in work.test.ts.
describe("the overview:", () => overviewTests(() => world));
describe("sessions:", () => sessionsTests(() => world));
describe("lanes:", () => lanesTests(() => world));
describe("schedules:", () => schedulesTests(() => world));

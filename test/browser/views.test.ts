import { afterAll, beforeAll, describe } from "vitest";
import { lanesTests } from "./lanes.ts";
import { overviewTests } from "./overview.ts";
import { recordsTests } from "./records.ts";
import { schedulesTests } from "./schedules.ts";
import { sessionsTests } from "./sessions.ts";
import { submitTests } from "./submit.ts";
import { workersTests } from "./workers.ts";
import { openWorld, SETUP_MS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// Beside dashboard.test.ts, with a browser and a server of its own: a view has a file and a line here.
describe("the overview:", () => overviewTests(() => world));
describe("submitting:", () => submitTests(() => world));
describe("sessions:", () => sessionsTests(() => world));
describe("lanes:", () => lanesTests(() => world));
describe("workers:", () => workersTests(() => world));
describe("schedules:", () => schedulesTests(() => world));
describe("batches, agents, events, deliveries:", () => recordsTests(() => world));

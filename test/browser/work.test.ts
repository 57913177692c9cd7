import { afterAll, beforeAll, describe } from "vitest";
import { recordsTests } from "./records.ts";
import { submitTests } from "./submit.ts";
import { taskTests } from "./task.ts";
import { tasksTests } from "./tasks.ts";
import { workersTests } from "./workers.ts";
import { openWorld, SETUP_MS, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
}, SETUP_MS);
afterAll(() => world?.close());

// Beside views.test.ts: the tasks, and what runs them.
describe("the list of tasks:", () => tasksTests(() => world));
describe("the page of a task:", () => taskTests(() => world));
describe("submitting:", () => submitTests(() => world));
describe("workers:", () => workersTests(() => world));
describe("batches, agents, events, deliveries:", () => recordsTests(() => world));

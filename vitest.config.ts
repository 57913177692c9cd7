import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

export default defineConfig({
  // Examples import the package by its name, as its users do.
  resolve: { tsconfigPaths: true },
  test: {
    include: ["src", "test", "examples", "bench", "dashboard/src"].map((folder) => `${folder}/**/*.test.ts`),
    globalSetup: ["test/support/temporary-folder.ts", "test/postgres/global-setup.ts"],
    // Tests wait for processes, browsers and disks: two workers use two cores by 70 %. More than three only make tests that
    // start processes of their own wait for each other.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Files of a worker share the modules they import: loading Rota anew for each took a fifth of the run. A test file
    // therefore puts back what it changes in the process (environment, globals, module state).
    isolate: false,
    // Nothing here waits for time to pass; on a busy machine, starting processes takes what it takes.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is polled for comes in moments; on a busy machine the same.
    expect: { poll: { timeout: 15_000 } },
    restoreMocks: true,
    // Programs that tests start keep their compiled code for each other: half of the CPU time of a start.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules", ".cache", "rota-tests") },
  },
});

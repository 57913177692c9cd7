import { defineConfig } from "vitest/config";

export default defineConfig({
  // Examples import the package by its name, as its users do.
  resolve: { tsconfigPaths: true },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts", "dashboard/src/**/*.test.ts"],
    globalSetup: ["test/postgres/global-setup.ts"],
    // Crash and end-to-end tests start processes of their own; more workers than this only make them wait
    // for each other on a machine with two cores.
    maxWorkers: 2,
    // Nothing here waits for time to pass; on a busy machine, starting processes takes what it takes.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    restoreMocks: true,
  },
});

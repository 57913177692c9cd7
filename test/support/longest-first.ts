import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The test files that take longest, by what they took on two cores. All others together take a fifth of the time. */
export const LONGEST = [
  "test/browser/dashboard.test.ts",
  "test/browser/views.test.ts",
  "test/browser/work.test.ts",
  "src/storage/postgres/conformance.test.ts",
  "src/storage/postgres/cost.test.ts",
  "test/end-to-end/cli.test.ts",
  "test/simulation/simulation.test.ts",
  "test/chaos/chaos.test.ts",
  "test/docs.test.ts",
  "test/interface/client.test.ts",
  "test/end-to-end/serve.test.ts",
  "test/end-to-end/cli-schedules.test.ts",
  "test/upgrade/upgrade.test.ts",
  "src/storage/sqlite/connection/file.test.ts",
  "test/end-to-end/draining.test.ts",
  "src/storage/sqlite/conformance.test.ts",
  "test/end-to-end/schedules.test.ts",
  "test/end-to-end/postgres.test.ts",
  "test/end-to-end/keys.test.ts",
  "test/end-to-end/sessions.test.ts",
  "test/end-to-end/bad-input.test.ts",
  "test/several-nodes.test.ts",
  "src/storage/postgres/concurrency.test.ts",
  "test/end-to-end/memory.test.ts",
  "src/storage/postgres/counters/recount.test.ts",
];

/**
 * Runs the longest files first, so that the workers end together. Vitest itself goes by what files took the last time, and
 * where there was none by how large they are: some of the longest are a few lines, and one worker was left with them.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rest = await super.sort(files);
    const place = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.indexOf(relative(this.ctx.config.root, moduleId).replaceAll("\\", "/"));
      return index === -1 ? LONGEST.length : index;
    };
    return rest.toSorted((a, b) => place(a) - place(b));
  }
}

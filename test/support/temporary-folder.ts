import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { folderInMemory } from "./memory-folder.ts";

/** Has the temporary files of the tests, and of the processes they start, in memory where that is possible. */
export default function setup(): (() => void) | undefined {
  const memory = folderInMemory();
  if (memory === undefined) return undefined;
  const before = process.env["TMPDIR"];
  const folder = mkdtempSync(join(memory, "rota-tests-"));
  process.env["TMPDIR"] = folder;
  return () => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  };
}

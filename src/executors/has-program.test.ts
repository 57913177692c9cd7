import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hasProgram } from "./has-program.ts";

function folderWithPrograms(): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-programs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "bin"));
  for (const name of ["bin/runs", "bin/text"]) writeFileSync(join(folder, name), "#!/bin/sh\n");
  chmodSync(join(folder, "bin/runs"), 0o755);
  return folder;
}

test("a command with a slash is looked for in the working directory, others in PATH", () => {
  const folder = folderWithPrograms();
  const here = { cwd: folder, path: undefined };
  expect(hasProgram({ ...here, command: "./bin/runs" })).toBe(true);
  expect(hasProgram({ ...here, command: join(folder, "bin/runs") })).toBe(true);
  expect(hasProgram({ ...here, command: "runs" })).toBe(false);
  const path = `/nowhere:${join(folder, "bin")}`;
  expect(hasProgram({ command: "runs", path })).toBe(true);
  expect(hasProgram({ command: "run", path })).toBe(false);
});

test("a folder, and a file that may not be executed, are no programs", () => {
  const here = { cwd: folderWithPrograms(), path: undefined };
  expect(hasProgram({ ...here, command: "./bin" })).toBe(false);
  expect(hasProgram({ ...here, command: "./bin/text" })).toBe(false);
});

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const SCRIPT = join(import.meta.dirname, "..", "scripts", "ensure-installed.cjs");

/** Stands in for npm: unpacks one package after the other, slowly enough to be seen. */
const NPM = `
const fs = require("fs");
const names = ["a", "b", "c"];
const next = () => {
  const name = names.shift();
  if (name === undefined) {
    const { packages } = JSON.parse(fs.readFileSync("package-lock.json", "utf8"));
    fs.writeFileSync("node_modules/.package-lock.json", JSON.stringify({ packages }));
    console.log("added 3 packages");
    return;
  }
  fs.mkdirSync("node_modules/" + name, { recursive: true });
  fs.writeFileSync("node_modules/" + name + "/package.json", "{}");
  setTimeout(next, Number(process.env.PAUSE_MS));
};
next();
`;

/** A clone with three packages to install, and one for another platform. */
function clone(npm = NPM): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "scripts"));
  copyFileSync(SCRIPT, join(folder, "scripts", "ensure-installed.cjs"));
  const packages = {
    "": { name: "clone" },
    "node_modules/a": { version: "1.0.0" },
    "node_modules/b": { version: "1.0.0", os: ["!other"] },
    "node_modules/c": { version: "1.0.0" },
    "node_modules/elsewhere": { version: "1.0.0", optional: true, os: ["other"] },
  };
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ packages }));
  writeFileSync(join(folder, "npm.cjs"), npm);
  writeFileSync(join(folder, "terminal.cjs"), "process.stderr.isTTY = true;");
  return folder;
}

function install(folder: string, { terminal = false, pauseMs = 0 } = {}) {
  const args = [
    ...(terminal ? ["--require", join(folder, "terminal.cjs")] : []),
    "scripts/ensure-installed.cjs",
  ];
  const { ROTA_INSTALLING: _, ...environment } = process.env;
  return spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: "utf8",
    env: { ...environment, npm_execpath: join(folder, "npm.cjs"), PAUSE_MS: String(pauseMs) },
  });
}

test("an installation says what it installs, how far it is and that it is done", () => {
  const { status, stdout, stderr } = install(clone(), { pauseMs: 1_200 });
  expect(status).toBe(0);
  expect(stdout).toBe("");
  expect(stderr).toMatch(
    /^Installing 3 packages \(only this once\) …\n( {2}[1-3] of 3 packages, \d+ s\n)+Installed 3 packages in \d+ s\.\n$/,
  );
});

test("in a terminal the progress is one line that changes", () => {
  const { stderr } = install(clone(), { terminal: true, pauseMs: 300 });
  const [first, progress, last] = stderr.replaceAll("\u001b[K", "<clear>").split("\n");
  expect(first).toBe("Installing 3 packages (only this once) …");
  expect(progress).toMatch(
    /^(\r {2}[0-3] of 3 packages, \d+ s<clear>){2,}\r<clear>Installed 3 packages in \d+ s\.$/,
  );
  expect(last).toBe("");
});

test("what is installed already is not mentioned", () => {
  const folder = clone();
  install(folder);
  expect(install(folder)).toMatchObject({ status: 0, stderr: "" });
});

test("an installation that fails says so, and what to do", () => {
  const { status, stderr } = install(clone('console.error("npm error: no network"); process.exitCode = 1;'));
  expect(status).toBe(1);
  expect(stderr).toContain("npm error: no network\n");
  expect(stderr).toMatch(/npm ci failed; run it by itself to see why\.\n$/);
});

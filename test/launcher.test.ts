import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const [, minimum] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? [];

/** Runs the launcher on this Node, made to believe that it is another. */
function launchOn(version: string): { status: number | null; stderr: string } {
  const pretend = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  const args = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`];
  const launcher = join(ROOT, "bin", "rota.js");
  return spawnSync(process.execPath, [...args, launcher, "--version"], { encoding: "utf8" });
}

test.each(["12.22.12", "20.20.2", "22.18.0"])("Node %s is refused as too old, with what to do", (version) => {
  const { status, stderr } = launchOn(version);
  expect(status).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^Rota needs Node ${minimum} or newer; this is v[\\d.]+\\. Install a newer one, .*\\n$`),
  );
});

test.each([`${minimum}.0`, "23.0.0", "24.0.0"])("Node %s is not", (version) => {
  expect(launchOn(version).stderr).not.toContain("Rota needs Node");
});

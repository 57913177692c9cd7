import { expect, onTestFinished, test, vi } from "vitest";
import { rotaCommand } from "./rota-command.ts";

test.each([
  ["npx", "npx rota"],
  ["rota", "npm run --silent rota --"],
  ["start", "npm run --silent rota --"],
  [undefined, "rota"],
])("a process of the npm script %s is shown commands that begin with %s", (script, command) => {
  vi.stubEnv("npm_lifecycle_event", script);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(rotaCommand()).toBe(command);
});

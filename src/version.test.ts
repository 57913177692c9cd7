import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { createRota } from "./rota.ts";
import { checkNode } from "./version.ts";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const minimum = engines.node.slice(2);

test.each(["20.20.2", "22.18.9", "12.22.12"])("Node %s is too old, which the message says", (version) => {
  expect(() => checkNode(version)).toThrow(`Rota needs Node ${minimum} or newer; this is v${version}.`);
});

test.each([`${minimum}.0`, "23.0.0", "24.21.0"])("Node %s is not", (version) => {
  expect(() => checkNode(version)).not.toThrow();
});

test.each(["sqlite::memory:", "postgres://127.0.0.1:1/none"])(
  "createRota refuses an old Node before it loads what %s needs",
  async (storage) => {
    const { versions } = process;
    const pretend = (value: object) => Object.defineProperty(process, "versions", { value });
    pretend({ ...versions, node: "20.20.2" });
    onTestFinished(() => void pretend(versions));
    await expect(createRota({ storage })).rejects.toThrow("Rota needs Node");
  },
);

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { newFolder } from "./end-to-end/server-process.ts";
import { scanSource } from "./layers/scan-source.ts";
import { openTestServer } from "./support/http.ts";

const ROOT = join(import.meta.dirname, "..");
const CLIENT = join(ROOT, "src", "client", "index.ts");

/** A file and everything it loads, with the packages they name. */
function closureOf(file: string): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (path: string): void => {
    if (files.has(path)) return;
    files.add(path);
    for (const { specifier, kind } of scanSource({ path, text: readFileSync(path, "utf8") }).imports) {
      if (kind === "type") continue;
      if (specifier.startsWith(".")) visit(join(dirname(path), specifier));
      else packages.add(specifier);
    }
  };
  visit(file);
  return { files: [...files], packages: [...packages] };
}

test("the client loads no package and nothing of Node's", () => {
  const { files, packages } = closureOf(CLIENT);
  expect(files.length).toBeGreaterThan(10);
  expect(packages).toEqual([]);
});

test("the client is typed for browsers, without the types of Node", async () => {
  const folder = newFolder();
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { lib: ["es2024", "dom", "dom.asynciterable"], types: [], paths: {} },
    files: [CLIENT],
    include: [],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", folder]);
  expect(stdout).toBe("");
});

test("the client works where there is nothing but what browsers have", async () => {
  const { url } = await openTestServer();
  const program = `
    for (const name of ["process", "global"]) delete globalThis[name];
    const { RotaClient } = await import(${JSON.stringify(pathToFileURL(CLIENT).href)});
    const rota = new RotaClient({ url: ${JSON.stringify(url)} });
    const events = rota.events();
    const { taskId } = await rota.tasks.submit({ message: "hello" });
    const types = [];
    for await (const { type } of events) {
      types.push(type);
      if (type === "task.completed") break;
    }
    console.log(JSON.stringify([types, (await rota.tasks.wait(taskId)).result]));
  `;
  const args = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual([["task.created", "task.started", "task.completed"], "hello"]);
});

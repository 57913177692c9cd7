import { createHash } from "node:crypto";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Everything that a build depends on: the app, the client and its imports, the packages, the build script. */
const SOURCES = [
  "dashboard/**/*.{ts,tsx,css,html,svg,json}",
  "src/client/**/*.ts",
  "src/model/**/*.ts",
  "package-lock.json",
  "scripts/build-dashboard.ts",
];
const TEST = /\.test\.tsx?$/;

/** Names a build by the contents of its sources: the same sources give the same name, any change another one. */
export async function sourcesHash(root: string): Promise<string> {
  const files: string[] = [];
  for await (const file of glob(SOURCES, { cwd: root })) {
    if (!TEST.test(file)) files.push(file.replaceAll("\\", "/"));
  }
  const contents = await Promise.all(files.sort().map((file) => readFile(join(root, file))));
  const hash = createHash("sha256");
  for (const [index, file] of files.entries()) {
    const bytes = contents[index] as Buffer;
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex").slice(0, 20);
}

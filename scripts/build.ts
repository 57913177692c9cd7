/** Makes `dist/`, which is what the published package contains: JavaScript, declarations, SQL and the dashboard. */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

rmSync(join(root, "dist"), { recursive: true, force: true });
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
for (const file of globSync("storage/**/*.sql", { cwd: join(root, "src") })) {
  cpSync(join(root, "src", file), join(root, "dist", file));
}
execFileSync(process.execPath, [join(root, "scripts", "build-dashboard.ts")], {
  cwd: root,
  stdio: "inherit",
});

import { execFile, spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { newFolder } from "../end-to-end/server-process.ts";
import { NEEDS_PYTHON, PYTHON } from "../support/python.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PACKAGE = join(ROOT, "clients", "python");
const run = promisify(execFile);

test.skipIf(PYTHON === null)(
  `the tests of the Python package pass${NEEDS_PYTHON}`,
  { timeout: 60_000 },
  async () => {
    const args = ["-W", "error::ResourceWarning", "-m", "unittest", "discover", "-t", ".", "-s", "tests"];
    const env = { ...process.env, PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1" };
    const { stderr } = await run(PYTHON as string, args, { cwd: PACKAGE, env });
    expect(stderr).toMatch(/^Ran \d\d tests.*\nOK\n$/ms);
  },
);

const hasPip = PYTHON !== null && spawnSync(PYTHON, ["-m", "pip", "--version"]).status === 0;
const needsPip = hasPip ? "" : " (skipped: no pip of Python 3.9 or newer here)";

test.skipIf(!hasPip)(
  `pip installs the Python package without a network, with its types${needsPip}`,
  { timeout: 60_000 },
  async () => {
    const folder = newFolder();
    // Neither an index nor what this user has configured: everything has to be in the folder of the package.
    const env = { ...process.env, PIP_NO_INDEX: "1", PIP_CONFIG_FILE: "/dev/null", PYTHONPATH: folder };
    const python = PYTHON as string;
    await run(python, ["-m", "pip", "install", "-q", "--target", folder, PACKAGE], { env, cwd: folder });
    const program =
      "import pathlib, rota; print(rota.__file__, (pathlib.Path(rota.__file__).parent / 'py.typed').exists())";
    const { stdout } = await run(python, ["-c", program], { env, cwd: folder });
    expect(stdout).toBe(`${join(folder, "rota", "__init__.py")} True\n`);
  },
);

test("the Python package has the version of Rota, in both places", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(readFileSync(join(PACKAGE, "pyproject.toml"), "utf8")).toContain(`version = "${version}"`);
  expect(readFileSync(join(PACKAGE, "src/rota/__init__.py"), "utf8")).toContain(`__version__ = "${version}"`);
});

test("the Python package imports nothing but the standard library", async () => {
  const files = globSync("**/*.py", { cwd: PACKAGE });
  expect(files.length).toBeGreaterThan(5);
  const imported = files.flatMap((file) =>
    [...readFileSync(join(PACKAGE, file), "utf8").matchAll(/^(?:from|import) ([\w.]+)/gm)].map(
      ([, name]) => name,
    ),
  );
  const known =
    "__future__ asyncio base64 collections concurrent.futures datetime hashlib http.client http.server inspect io json logging os pathlib platform queue random re rota signal socket subprocess sys tarfile threading time typing unittest urllib.parse uuid zipfile".split(
      " ",
    );
  expect(imported.filter((name) => !name?.startsWith(".") && !known.includes(name ?? ""))).toEqual([]);
});

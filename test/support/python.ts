import { spawnSync } from "node:child_process";

const VERSION_MIN = [3, 9] as const;

/** A Python that the package of clients/python supports; null: there is none on this machine. */
export const PYTHON: string | null =
  ["python3", "python"].find((program) => {
    const ask = "import sys; print(sys.version_info[0], sys.version_info[1])";
    const [major = 0, minor = 0] = (spawnSync(program, ["-c", ask], { encoding: "utf8" }).stdout ?? "")
      .split(" ")
      .map(Number);
    return major === VERSION_MIN[0] && minor >= VERSION_MIN[1];
  }) ?? null;

/** Added to the name of a test that needs it, so that a skipped one says why. */
export const NEEDS_PYTHON = PYTHON === null ? " (skipped: no Python 3.9 or newer here)" : "";

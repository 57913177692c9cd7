import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

export interface HasProgramParams {
  readonly command: string;
  /** The folder of relative paths. Left out: that of this process. */
  readonly cwd?: string;
  /** The variable PATH: where names without a slash are looked for. */
  readonly path: string | undefined;
}

/** Whether there is a file that may be executed where the start of this command looks for it. */
export function hasProgram({ command, cwd = ".", path = "" }: HasProgramParams): boolean {
  // Windows also tries names with endings like .exe: the start of the program decides there.
  if (process.platform === "win32") return true;
  if (command.includes("/")) return isExecutable(resolve(cwd, command));
  return path.split(delimiter).some((folder) => isExecutable(resolve(cwd, join(folder, command))));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

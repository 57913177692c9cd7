import { isObject, preview, quoted } from "./input/field-checks.ts";

/** In arguments and variables of a program, a NUL ends the text. */
const NUL = "\0";

/** The environment variables of Rota that every program gets: what it needs to run, and nothing secret. */
export const PASSED_VARIABLES = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"] as const;

/** What is wrong with a program and its arguments, as the rest of "`command` must …"; null: nothing. */
export function programFault(command: unknown): string | null {
  const isList = Array.isArray(command) && command.every((part) => typeof part === "string");
  const [program = ""] = isList ? command : [];
  if (!isList || program.trim() === "") {
    return 'be an array of strings, the program and its arguments, like ["python3", "agent.py"]';
  }
  return command.some((part) => part.includes(NUL)) ? "have no NUL in it" : null;
}

/** The same for the folder that it runs in. */
export function folderFault(folder: unknown): string | null {
  if (typeof folder !== "string" || folder === "") return `be the path of a folder, not ${quoted(folder)}`;
  return folder.includes(NUL) ? "have no NUL in it" : null;
}

/** The same for its environment variables. The message repeats no value: it may be a secret. */
export function variablesFault(variables: unknown): string | null {
  if (!isObject(variables)) return 'be an object of strings, like {"API_URL": "https://api.example"}';
  for (const [name, value] of Object.entries(variables)) {
    if (name === "" || /[=\0]/.test(name)) {
      return `have names without \`=\`, like \`API_URL\`, not "${preview(name)}"`;
    }
    if (typeof value !== "string") return `be an object of strings: \`${preview(name)}\` is not a string`;
    if (value.includes(NUL)) return `have no NUL in it: \`${preview(name)}\` has`;
  }
  return null;
}

/** The same for the name of a variable. The message does not repeat it: a caller may have sent the secret itself. */
export function variableNameFault(name: unknown): string | null {
  if (typeof name === "string" && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return null;
  return "be the name of an environment variable, like `OPENAI_API_KEY`";
}

/** The name of a variable for messages. Masked if it does not look like one: it may be the secret itself. */
export function shownVariable(name: string): string {
  return /^[A-Z_][A-Z0-9_]*$/.test(name) ? name : "…";
}

/** The same for the names of several. */
export function variableNamesFault(names: unknown): string | null {
  if (Array.isArray(names) && names.every((name) => variableNameFault(name) === null)) return null;
  return 'be an array of names of environment variables, like ["OPENAI_API_KEY"]';
}

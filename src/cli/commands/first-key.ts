import { parseStorageUrl } from "../../model/storage-url.ts";
import { rotaCommand } from "../terminal/rota-command.ts";

/** The command that creates the first key of a storage, to paste. A password in the storage URL is not repeated. */
export function howToMakeKey(storage: string): string {
  const url = parseStorageUrl(storage);
  if (url?.driver === "sqlite" && url.path === ":memory:") {
    return "a storage in memory has no keys when it starts, so choose another with --storage, like sqlite:rota.db";
  }
  const shown = url?.driver === "sqlite" ? storage : "postgres://…";
  return `create one with\n  ${rotaCommand()} keys create --role admin --name me --storage ${shown}`;
}

import { isRunByNpm } from "../../config/process-environment.ts";
import { parseStorageUrl } from "../../model/storage-url.ts";

/** The command that creates the first key of a storage, to paste. A password in the storage URL is not repeated. */
export function howToMakeKey(storage: string): string {
  const url = parseStorageUrl(storage);
  if (url?.driver === "sqlite" && url.path === ":memory:") {
    return "what is kept in memory has none when it starts, so choose another storage with --storage, like sqlite:rota.db";
  }
  const rota = isRunByNpm() ? "npm run --silent rota --" : "rota";
  const shown = url?.driver === "sqlite" ? storage : "postgres://…";
  return `make one with\n  ${rota} keys create --role admin --name me --storage ${shown}`;
}

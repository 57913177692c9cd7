import { onTestFinished } from "vitest";
import { ConfigSource } from "../../src/config/config-source.ts";
import { rotaOptions } from "../../src/config/rota-options.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";
import { ask } from "../support/http.ts";
import { newFolder, type RunningProcess, type RunParams, runRota } from "./server-process.ts";

/** Runs a command to its end. */
export async function run(args: readonly string[], params: RunParams = {}) {
  const process = runRota(args, params);
  const { code, signal } = await process.ended;
  return { code: code ?? signal, stdout: process.stdout(), stderr: process.stderr() };
}

export interface ServerParams {
  /** Variables of the server, not of the commands. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The file of its configuration. */
  readonly config?: string;
}

/** A server, and commands that are told of it by a variable. */
export async function withServer(params: ServerParams = {}) {
  const server = await serveHere(params);
  const environment = { ROTA_URL: server.url };
  const rota = (args: readonly string[], params: RunParams = {}) => run(args, { environment, ...params });
  return {
    server,
    rota,
    start: (args: readonly string[]): RunningProcess => runRota(args, { environment }),
    submit: async (...args: string[]) => (await rota(["submit", ...args])).stdout.trim(),
  };
}

/** Serves in this process, which has the code: to start another takes longer than the commands that are tested on it. */
async function serveHere({ environment = {}, config: file }: ServerParams) {
  const flags = { "server.port": "0", storage: "sqlite::memory:" };
  const loaded = new ConfigSource({ file, flags, environment, folder: newFolder() }).load();
  const rota = await createRota({ ...rotaOptions(loaded), log: silentLog });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  const server = await listen({
    ...loaded.config.server,
    rota,
    config: () => loaded.config,
    log: silentLog,
  });
  onTestFinished(() => server.close());
  await rota.start();
  return {
    url: server.url,
    ask: (path: string, init?: Parameters<typeof ask>[1]) => ask(server.url + path, init),
  };
}

import { type ConfigParams, serveConfig } from "../support/serve-config.ts";
import { newFolder, type RunningProcess, type RunParams, runRota } from "./server-process.ts";

/** Runs a command to its end. */
export async function run(args: readonly string[], params: RunParams = {}) {
  const process = runRota(args, params);
  const { code, signal } = await process.ended;
  return { code: code ?? signal, stdout: process.stdout(), stderr: process.stderr() };
}

/** A server, and commands that find it by a variable. `environment` and `file`: of the server. */
export async function withServer(params: Partial<ConfigParams> = {}) {
  const server = await serveConfig({ folder: newFolder(), ...params });
  const environment = { ROTA_URL: server.url };
  const rota = (args: readonly string[], params: RunParams = {}) => run(args, { environment, ...params });
  return {
    server,
    rota,
    start: (args: readonly string[]): RunningProcess => runRota(args, { environment }),
    submit: async (...args: string[]) => (await rota(["submit", ...args])).stdout.trim(),
  };
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CuttingProxy, startCuttingProxy } from "../postgres/cutting-proxy.ts";
import { findFreePort, type PostgresServer, startPostgres } from "../postgres/server.ts";
import { type AgentsProgram, startAgentsProgram } from "./agents-program.ts";
import type { Chance } from "./chance.ts";
import type { StorageName } from "./plan.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { RotaProcess } from "./rota-process.ts";
import { configFor, nodeName, WORKERS, workerName } from "./settings.ts";
import { ChaosWorker } from "./workers/chaos-worker.ts";
import { type LosingProxy, startLosingProxy } from "./workers/losing-proxy.ts";

/** Everything that a run consists of, but for the clients. */
export interface World {
  readonly nodes: readonly RotaProcess[];
  readonly program: AgentsProgram;
  readonly receivers: Receivers;
  /** Null on SQLite. */
  readonly postgres: PostgresServer | null;
  /** Between each node and PostgreSQL; none on SQLite. */
  readonly proxies: readonly CuttingProxy[];
  /** Processes that pull tasks. They are not started: they need a key. */
  readonly workers: readonly ChaosWorker[];
  /** Between each worker and the nodes. */
  readonly workerProxies: readonly LosingProxy[];
  /** Where the nodes' logs are. */
  readonly folder: string;
  /** Ends all of it; what the nodes wrote is kept if wanted. */
  close(keep: { readonly logs: boolean }): Promise<void>;
}

export async function openWorld(params: {
  readonly storage: StorageName;
  readonly nodes: number;
  readonly chance: Chance;
  /** How many tries of one callback may go wrong. */
  readonly callbackFailures: number;
}): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "rota-chaos-"));
  const program = await startAgentsProgram(params.chance.fork("program"));
  const receivers = await startReceivers(params.chance.fork("receivers"), params.callbackFailures);
  const postgres = params.storage === "postgres" ? await startPostgres({ durable: true }) : null;
  const nodes: RotaProcess[] = [];
  const proxies: CuttingProxy[] = [];
  const workers: ChaosWorker[] = [];
  const workerProxies: LosingProxy[] = [];
  const close = async ({ logs }: { logs: boolean }) => {
    await Promise.all([...nodes, ...workers].map((running) => running.kill()));
    for (const proxy of [...proxies, ...workerProxies]) proxy.close();
    program.close();
    receivers.close();
    await postgres?.stop();
    if (!logs) await rm(folder, { recursive: true, force: true });
  };
  try {
    // Looked up at the same time, so that no two ports are the same.
    const ports = await Promise.all(Array.from({ length: params.nodes }, () => findFreePort()));
    for (const [index, port] of ports.entries()) {
      const name = nodeName(index);
      const configFile = join(folder, `${name}.json`);
      await writeFile(
        configFile,
        JSON.stringify(configFor(program.urlFor(name), { name, nodes: params.nodes })),
      );
      let storage = `sqlite:${join(folder, "rota.db")}`;
      if (postgres !== null) {
        const proxy = await startCuttingProxy(postgres.url);
        proxies.push(proxy);
        storage = proxy.url;
      }
      nodes.push(new RotaProcess({ name, port, storage, configFile, folder }));
    }
    const nodeUrls = nodes.map(({ url }) => url);
    for (let index = 0; index < WORKERS; index += 1) {
      const name = workerName(index);
      const proxy = await startLosingProxy(nodeUrls, params.chance.fork(name));
      workerProxies.push(proxy);
      const language = index === 1 ? "python" : "typescript";
      const programUrl = program.urlFor(name);
      workers.push(new ChaosWorker({ name, language, url: proxy.url, programUrl, folder }));
    }
    // Also all at once, on a database in which there is nothing yet.
    await Promise.all(nodes.map((node) => node.start()));
  } catch (error) {
    await close({ logs: true });
    throw error;
  }
  return { nodes, program, receivers, postgres, proxies, workers, workerProxies, folder, close };
}

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Responds to a GET with the URL of the test run's PostgreSQL, once that has started. */
    postgresDoor: string;
  }
}

/**
 * One PostgreSQL for the whole test run, started when the first test file knocks: a run that needs none does
 * not pay for it. It is started here, in the main process, so that it outlives the workers.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const existing = process.env["ROTA_TEST_POSTGRES_URL"];
  let started: Promise<PostgresServer> | undefined;

  const door = createServer(async (_request, response) => {
    try {
      if (existing) return void response.end(existing);
      started ??= startPostgres({ durable: false });
      response.end((await started).url);
    } catch (error) {
      response.writeHead(500).end(explain(error));
    }
  });
  door.listen(0, "127.0.0.1");
  await once(door, "listening");
  const { port } = door.address() as AddressInfo;
  project.provide("postgresDoor", `http://127.0.0.1:${port}/`);

  return async () => {
    door.close();
    door.closeAllConnections();
    // Every test that asked for the server has got the error of a failed start.
    const server = await started?.catch(() => undefined);
    await server?.stop();
  };
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n${explain(error.cause)}`;
}

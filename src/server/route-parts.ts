import type { FastifyRequest } from "fastify";
import type { Rota } from "../interface/rota.ts";
import type { Clock } from "../model/clock.ts";
import type { RotaError } from "../model/errors.ts";
import type { Log } from "../model/log.ts";
import type { BatchTurns } from "./batch-turns.ts";
import type { EventStreams } from "./event-stream.ts";
import type { LargeJson } from "./large-json.ts";
import type { MessageRuns } from "./message-runs.ts";
import type { ReadTurns } from "./read-turns.ts";
import type { TaskWaits } from "./task-waits.ts";

/** The dependencies of all routes. The tenant is not among them: it comes with each request, from its caller. */
export interface RouteParts {
  readonly installation: Installation;
  /** Whether no other machine can reach the server. */
  readonly isLocal: boolean;
  readonly hasDashboard: boolean;
  /** Where callers find the server, behind a proxy; empty: at `/`. */
  readonly basePath: string;
  /** The configuration, including secrets. */
  readonly config: () => object;
  readonly streams: EventStreams;
  readonly waits: TaskWaits;
  readonly runs: MessageRuns;
  readonly largeJson: LargeJson;
  /** The turns in which pages of lists are read. */
  readonly pageTurns: ReadTurns;
  /** The turns in which batches are stored. */
  readonly batchTurns: BatchTurns;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts and records an error inside a successful response, such as that of an MCP tool, like an error of HTTP. */
  readonly onRefusedCall: (request: FastifyRequest, error: RotaError) => void;
}

/** What belongs to the installation rather than to a tenant. */
export type Installation = Pick<
  Rota,
  "state" | "node" | "tenant" | "health" | "doctor" | "nodes" | "tenants" | "keys" | "audit"
>;

import type { DoctorOptions, DoctorProgress, DoctorReport } from "../interface/doctor.ts";
import { answeredError } from "./answered-error.ts";
import type { Connection } from "./connection.ts";
import { connectionFailed } from "./connection-error.ts";
import { EventConnection } from "./event-connection.ts";

const PATH = "/v1/doctor";
/** A million tasks take seconds. The client does not know how many there are. */
const REPORT_MS = 10 * 60_000;
/** The server sends an event for each further percent. */
const SILENCE_MAX_MS = 2 * 60_000;

/** The report of an examination. With `onProgress` it comes over a stream that also reports progress. */
export function askDoctor(
  connection: Connection,
  { signal, onProgress }: DoctorOptions,
): Promise<DoctorReport> {
  if (onProgress === undefined) return connection.ask({ path: PATH, signal, timeoutMs: REPORT_MS });
  return followDoctor(connection, { signal: signal ?? new AbortController().signal, onProgress });
}

async function followDoctor(
  connection: Connection,
  { signal, onProgress }: Required<DoctorOptions>,
): Promise<DoctorReport> {
  signal.throwIfAborted();
  const params = { path: PATH, query: {}, silenceMaxMs: SILENCE_MAX_MS, after: undefined, signal };
  const stream = await EventConnection.open(connection, params).catch((error) => {
    signal.throwIfAborted();
    throw error;
  });
  for await (const { type, data } of stream.messages()) {
    const said: unknown = data === undefined ? undefined : JSON.parse(data);
    if (type === "progress") onProgress(said as DoctorProgress);
    if (type === "report") return said as DoctorReport;
    if (type === "error") throw answeredError(200, said) ?? new Error(`the check failed: ${data}`);
  }
  signal.throwIfAborted();
  throw connectionFailed(
    connection.settings.url,
    new Error("the connection was lost before the report came"),
  );
}

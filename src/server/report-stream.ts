import type { ServerResponse } from "node:http";
import type { DoctorProgress, DoctorReport } from "../interface/doctor.ts";
import { RotaError } from "../model/errors.ts";
import { STREAM_HEADERS } from "./event-stream.ts";

/** If the total is unknown, progress is reported each time this many more are done. */
const STEP = 100;

/** The progress of an examination, as events: `progress` for each further percent, and `report` or `error` at the end. */
export class ReportStream {
  readonly #response: ServerResponse;
  #said = "";

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, STREAM_HEADERS).flushHeaders();
    this.#write("open", {});
  }

  progress(progress: DoctorProgress): void {
    const { check, done, total } = progress;
    const step = Math.floor(total === null ? done / STEP : (100 * done) / Math.max(total, 1));
    const said = `${check} ${step}`;
    // A caller that has not read the previous events needs no further ones.
    if (said === this.#said || this.#response.writableNeedDrain) return;
    this.#said = said;
    this.#write("progress", progress);
  }

  end(report: DoctorReport): void {
    this.#write("report", report);
    this.#response.end();
  }

  fail(error: unknown): void {
    const known =
      error instanceof RotaError
        ? error
        : new RotaError("internal_error", "the doctor's check failed; the log of this node has the details", {
            cause: error,
          });
    this.#write("error", known.toJSON());
    this.#response.end();
  }

  #write(event: string, data: object): void {
    if (!this.#response.destroyed) this.#response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}

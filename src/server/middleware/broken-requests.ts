import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { RotaError } from "../../model/errors.ts";

/** Node's own limit on the request line and the headers. */
const HEADER_BYTES_MAX = 16_384;
/** How long a request may take to arrive. Without a limit, one that never ends would hold its connection forever. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Responds to broken or partial requests on the socket itself: there is no response object. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const answer = answerFor(error);
  const body = JSON.stringify(answer);
  socket.end(
    [
      `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}`,
      "content-type: application/json; charset=utf-8",
      "cache-control: no-store",
      "x-content-type-options: nosniff",
      `content-length: ${Buffer.byteLength(body)}`,
      "connection: close",
      "",
      body,
    ].join("\r\n"),
  );
}

function answerFor(error: NodeJS.ErrnoException): RotaError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new RotaError("body_too_large", `the headers are larger than ${HEADER_BYTES_MAX} bytes`);
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new RotaError("invalid_json", `the request did not arrive within ${REQUEST_TIMEOUT_MS} ms`);
    default:
      return new RotaError("invalid_json", `this is not an HTTP request: ${error.message}`, { cause: error });
  }
}

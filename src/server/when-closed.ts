import type { ServerResponse } from "node:http";

/**
 * Calls `tell` once, when the connection is closed for any reason. If it is already closed, `tell` is called soon: `close` does
 * not fire again for a caller that disconnected while the server looked up its key.
 */
export function whenClosed(response: ServerResponse, tell: () => void): void {
  if (response.destroyed) queueMicrotask(tell);
  else response.once("close", tell);
}

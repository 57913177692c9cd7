import type { ServerResponse } from "node:http";

/**
 * Calls `callback` once, when the connection is closed for any reason. If it is already closed, `callback` is called soon: `close` does
 * not fire again for a caller that disconnected while the server looked up its key.
 */
export function whenClosed(response: ServerResponse, callback: () => void): void {
  if (response.destroyed) queueMicrotask(callback);
  else response.once("close", callback);
}

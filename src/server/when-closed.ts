import type { ServerResponse } from "node:http";

/**
 * Calls `tell` once, when a connection is closed, for whatever reason: soon, if it already is. Between a request and whoever
 * answers it somebody may have asked the database who asks, and a reader that went away meanwhile is not told of again.
 */
export function whenClosed(response: ServerResponse, tell: () => void): void {
  if (response.destroyed) queueMicrotask(tell);
  else response.once("close", tell);
}

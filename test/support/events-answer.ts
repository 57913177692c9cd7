import type { ServerResponse } from "node:http";

/** Begins a response of server-sent events. */
export function beginEvents(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { "content-type": "text/event-stream" });
}

/** Responds with these events, each as JSON unless it is a text already, and ends. */
export function answerEvents(response: ServerResponse, ...events: readonly unknown[]): void {
  beginEvents(response).end(events.map(eventText).join(""));
}

export function eventText(event: unknown): string {
  return `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`;
}

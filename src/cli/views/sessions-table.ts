import type { Session } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { shownSpan } from "./times.ts";

/** Sessions as a table, in the order given. */
export function sessionsTable(
  sessions: readonly Session[],
  { width }: { readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "SESSION", shrinksTo: 12 },
      { title: "AGENT", shrinksTo: 8 },
      { title: "LANE" },
      { title: "MODE" },
      { title: "RUNNING", align: "right" },
      { title: "WAITING", align: "right" },
      { title: "CONTEXT", align: "right" },
    ],
    sessions.map((session) => [
      oneLine(session.key),
      oneLine(session.agentId),
      oneLine(session.lane),
      session.mode,
      `${session.running} of ${session.effectiveMaxConcurrent}`,
      String(session.queued),
      contextText(session) ?? "",
    ]),
    { width },
  );
}

/** All fields of a session, for people. */
export function sessionSheet(session: Session): string[] {
  const { maxConcurrent, effectiveMaxConcurrent, cap, drop, debounceMs } = session;
  const throttled = effectiveMaxConcurrent < maxConcurrent ? ` of ${maxConcurrent}, its context is full` : "";
  return sheetLines([
    ["session", oneLine(session.key)],
    ["agent", oneLine(session.agentId)],
    ["lane", oneLine(session.lane)],
    ["mode", session.mode],
    ["at once", `${effectiveMaxConcurrent}${throttled}`],
    ["may wait", `${cap}, then the ${drop === "old" ? "oldest goes" : "new one is refused"}`],
    ["debounce", shownSpan(debounceMs)],
    ["context", contextText(session)],
    ["generation", String(session.generation)],
    ["running", String(session.running)],
    ["waiting", String(session.queued)],
  ]);
}

function contextText({ tokens, contextWindow }: Session): string | undefined {
  if (tokens === null) return undefined;
  if (contextWindow === null) return `${tokens} tokens`;
  return `${Math.floor((tokens / contextWindow) * 100)} %`;
}

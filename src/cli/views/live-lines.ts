import { stripVTControlCharacters } from "node:util";
import type { Task } from "../../model/task.ts";
import { cut, displayWidth, oneLine, pad } from "../terminal/display-text.ts";
import { styled } from "../terminal/style.ts";
import { eventText, subjectOf } from "./event-line.ts";
import type { LiveModel } from "./live-model.ts";
import { tableLines } from "./table.ts";
import { workText } from "./task-text.ts";
import { clockTime, shownSpan } from "./times.ts";
import { waitingTable } from "./waiting-table.ts";

export interface LiveParams {
  readonly title: string;
  /** A line below the counts. */
  readonly caption?: string | undefined;
  readonly width: number;
  readonly height: number;
  readonly now: number;
}

/** Narrower screens do not show whole ids. */
const WIDE = 100;

/** The lines of the screen: counts, agents, running tasks, why tasks wait, and the last events. */
export function liveLines(model: LiveModel, { title, caption, width, height, now }: LiveParams): string[] {
  const said = caption === undefined ? [] : [styled("bold", cut(caption, width))];
  const head = [...headLines(model, { title, width, now }), ...said, ""];
  const foot = styled("dim", "q or Ctrl-C: quit");
  // Agents, running and waiting tasks share two thirds of the remaining lines. Events take the rest.
  const room = Math.max(height - head.length - 1, 0);
  const parts = [
    ...section(agentLines(model, width), Math.floor(room * 0.28)),
    ...section(runningLines(model, { width, now }), Math.floor(room * 0.25)),
    ...section(waitingLines(model, width), Math.floor(room * 0.2)),
  ];
  const recent = recentLines(model, width).slice(0, Math.max(room - parts.length, 0));
  const lines = [...head, ...parts, ...recent].slice(0, Math.max(height - 1, 0));
  while (lines.length < height - 1) lines.push("");
  return [...lines, foot].map((line) => withinWidth(line, width));
}

function headLines(
  model: LiveModel,
  { title, width, now }: Pick<LiveParams, "title" | "width" | "now">,
): string[] {
  const time = clockTime(new Date(now));
  const shownTitle = cut(title, Math.max(width - time.length - 2, 0));
  const first = styled("bold", shownTitle) + pad(time, width - displayWidth(shownTitle), "right");
  if (model.trouble !== undefined) return [first, styled("red", cut(oneLine(model.trouble), width))];
  if (model.snapshot === undefined) return [first, "…"];
  const { queue, config } = model.snapshot.stats;
  const queued = styled("yellow", `${queue.totalQueued} queued`);
  const running = styled("cyan", `${queue.totalInflight} running`);
  const lanes = model.lanes().map(([name, count]) => `${oneLine(name)} ${count}`);
  const rates = (["started", "done", "failed"] as const).map(
    (what) => `${model.rate(what, now).toFixed(1)} ${what}/s`,
  );
  return [
    first,
    `${queued} of ${config.maxQueueSize} · ${running}${lanes.length === 0 ? "" : ` (${lanes.join(", ")})`}`,
    styled("dim", rates.join(" · ")),
  ];
}

function agentLines(model: LiveModel, width: number): string[] {
  const agents = model.agents();
  if (agents.length === 0) return [];
  const numbers = ["RUNNING", "QUEUED", "DONE", "FAILED"];
  return tableLines(
    [{ title: "AGENT", shrinksTo: 8 }, ...numbers.map((title) => ({ title, align: "right" as const }))],
    agents.map(({ agent, running, queued, done, failed }) => [
      oneLine(agent),
      ...[running, queued, done, failed].map(String),
    ]),
    { width },
  );
}

function runningLines(model: LiveModel, { width, now }: { width: number; now: number }): string[] {
  const running = model.snapshot?.running ?? [];
  if (running.length === 0) return [];
  const rows = running.map((task) => {
    const progress = model.progressOf(task.taskId);
    const said = progress === undefined ? "" : `${oneLine(JSON.stringify(progress))} · `;
    return [
      shownId(task.taskId, width),
      oneLine(task.agentId),
      runningFor(task, now),
      `${said}${workText(task)}`,
    ];
  });
  return tableLines(
    [
      { title: "RUNNING TASK" },
      { title: "AGENT", shrinksTo: 8 },
      { title: "FOR", align: "right" },
      { title: "WHAT", shrinksTo: 8 },
    ],
    rows,
    { width },
  );
}

function waitingLines(model: LiveModel, width: number): string[] {
  const reasons = model.snapshot?.waiting ?? [];
  return reasons.length === 0 ? [] : waitingTable(reasons, { width, title: "WAITING" });
}

function runningFor({ attempts, startedAt }: Task, now: number): string {
  const since = attempts.at(-1)?.startedAt ?? startedAt;
  return since === undefined ? "" : shownSpan(Math.max(now - Date.parse(since), 0));
}

function recentLines(model: LiveModel, width: number): string[] {
  const events = model.recent(50);
  if (events.length === 0) return [];
  return tableLines(
    [
      { title: "TIME" },
      { title: "TASK" },
      { title: "AGENT", shrinksTo: 8 },
      { title: "WHAT HAPPENED", shrinksTo: 8, style: styledEvent },
    ],
    events.map((event) => {
      const { id, agent } = subjectOf(event);
      return [clockTime(new Date(event.timestamp)), shownId(id, width), agent, eventText(event)];
    }),
    { width },
  );
}

const EVENT_STYLES: readonly (readonly [RegExp, Parameters<typeof styled>[0]])[] = [
  [/^(batch )?completed/, "green"],
  [/^(failed|rejected)/, "red"],
  [/^(retrying|preempted|cancelled)/, "yellow"],
  [/^started/, "cyan"],
];

function styledEvent(text: string): string {
  const style = EVENT_STYLES.find(([pattern]) => pattern.test(text))?.[1];
  return style === undefined ? text : styled(style, text);
}

/** The whole id if there is room, so that it can be copied. Else its end, in which ids of the same millisecond differ. */
function shownId(id: string, width: number): string {
  return width >= WIDE || id.length <= 12 ? id : `…${id.slice(-8)}`;
}

/** A part of the screen with `room` lines, the last of them empty. Lines that do not fit are counted. */
function section(lines: readonly string[], room: number): string[] {
  if (lines.length === 0 || room < 3) return [];
  if (lines.length < room) return [...lines, ""];
  const kept = lines.slice(0, room - 2);
  return [...kept, styled("dim", `… and ${lines.length - kept.length} more`), ""];
}

/** A line wider than the screen would wrap and push down everything below it. */
function withinWidth(line: string, width: number): string {
  return displayWidth(line) <= width ? line : cut(stripVTControlCharacters(line), width);
}

import { setTimeout as sleep } from "node:timers/promises";
import type { RotaClient } from "../../client/index.ts";
import type { Events, EventsOptions } from "../../interface/rota.ts";
import { Screen, type ScreenParams } from "../terminal/screen.ts";
import { liveLines } from "./live-lines.ts";
import { LiveModel } from "./live-model.ts";

const REFRESH_MS = 1_000;
/** Running tasks per request: more than a screen has lines. */
const RUNNING_MAX = 100;

const CTRL_C = "\x03";

export interface LiveViewParams extends Partial<Pick<ScreenParams, "stdin" | "stdout">> {
  /** The first line of the screen. */
  readonly title: string;
  /** A line below the counts, read for each drawing; left out: no line. */
  readonly caption?: () => string;
  readonly filter: Pick<EventsOptions, "agentId" | "batchId" | "sessionKey" | "scheduleId">;
  /** Ends the view. */
  readonly signal: AbortSignal;
}

/** Shows events on the whole terminal, until the user presses q or Ctrl-C, or the signal fires. */
export async function liveView(
  rota: RotaClient,
  { title, caption, filter, signal, stdin = process.stdin, stdout = process.stdout }: LiveViewParams,
): Promise<void> {
  const model = new LiveModel(Date.now());
  const ended = new AbortController();
  const end = () => ended.abort();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();

  const events = rota.events({ ...filter, signal: ended.signal });
  // Before the screen is opened, so that a missing server is reported as a normal error.
  try {
    await events.ready;
  } catch (error) {
    if (ended.signal.aborted) return;
    throw error;
  }
  const draw = () =>
    screen.draw(liveLines(model, { title, caption: caption?.(), ...screen.size, now: Date.now() }));
  const screen = new Screen({
    stdin,
    stdout,
    onResize: draw,
    onKey: (key) => (key === "q" || key === CTRL_C ? end() : undefined),
  });
  screen.open();
  try {
    const following = follow(events, model);
    while (!ended.signal.aborted) {
      await refresh(rota, model, { filter, signal: ended.signal });
      draw();
      await sleep(REFRESH_MS, undefined, { signal: ended.signal }).catch(() => {});
    }
    await following;
  } finally {
    screen.close();
    end();
    signal.removeEventListener("abort", end);
  }
}

async function follow(events: Events, model: LiveModel): Promise<void> {
  try {
    for await (const event of events) model.take(event, Date.now());
  } catch (error) {
    model.trouble = (error as Error).message;
  }
}

async function refresh(
  rota: RotaClient,
  model: LiveModel,
  { filter, signal }: Pick<LiveViewParams, "filter" | "signal">,
): Promise<void> {
  try {
    const isWhole = Object.values(filter).every((value) => value === undefined);
    const [stats, { tasks }, waiting] = await Promise.all([
      rota.stats({ signal }),
      rota.tasks.list({ ...filter, state: ["assigned", "running"], limit: RUNNING_MAX }, { signal }),
      isWhole ? rota.waiting({ signal }).catch(() => undefined) : undefined,
    ]);
    model.snapshot = {
      stats,
      running: tasks,
      ...(waiting === undefined ? {} : { waiting: waiting.reasons }),
    };
    model.trouble = undefined;
  } catch (error) {
    // The next refresh tries again.
    if (!signal.aborted) model.trouble = `Trying again: ${(error as Error).message}`;
  }
}

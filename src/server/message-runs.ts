import type { ServerResponse } from "node:http";
import type { SentMessage, SessionAnswer, SessionReply, StoppedTasks } from "../interface/sessions.ts";
import type { SizedReading } from "../interface/tasks.ts";
import { RotaError } from "../model/errors.ts";
import { isTerminal } from "../model/task-state.ts";
import type { CallerContext } from "./caller-context.ts";
import type { EventStreams } from "./event-stream.ts";
import type { TaskWaits } from "./task-waits.ts";
import { whenClosed } from "./when-closed.ts";

export interface MessageRun {
  readonly callerContext: CallerContext;
  readonly sessionKey: string;
  /** The message as the caller sent it. */
  readonly message: unknown;
  readonly send: () => Promise<SessionAnswer>;
  /** Whether to cancel the task when the caller disconnects. */
  readonly cancelOnDisconnect: boolean;
  /** How the ended task is read. */
  readonly reading: SizedReading;
}

export interface MessageRunsOptions {
  readonly waits: TaskWaits;
  readonly streams: EventStreams;
}

/** Requests that send a message to a session and wait for its outcome. They take a slot first, and then send the message. */
export class MessageRuns {
  readonly #options: MessageRunsOptions;

  constructor(options: MessageRunsOptions) {
    this.#options = options;
  }

  /** Resolves with the task once it has ended, or with its state when the time is over or the server closes. */
  wait(
    response: ServerResponse,
    {
      callerContext,
      message,
      send,
      cancelOnDisconnect,
      reading,
      timeoutSec,
    }: MessageRun & { readonly timeoutSec: number },
  ): Promise<{ ended: boolean; answer: SessionReply | SentMessage }> {
    const { waits } = this.#options;
    const gone = goneOf(response);
    return waits.holding(callerContext, async () => {
      const sent = await send();
      if (sent.taskId === undefined) return { ended: true, answer: sent };
      const task = await waits.untilEnded(callerContext, sent.taskId, {
        timeoutMs: timeoutSec * 1_000,
        gone,
        ...reading,
      });
      if (isTerminal(task.state)) return { ended: true, answer: task };
      if (gone.aborted && cancelOnDisconnect) await cancelUnlessShared(callerContext, sent, message);
      return { ended: false, answer: { ...sent, state: task.state } };
    });
  }

  /**
   * Streams the events of the task up to its end, and returns null. A stop word has no task: then it returns what was stopped.
   */
  async stream(
    response: ServerResponse,
    {
      callerContext,
      sessionKey,
      message,
      send,
      cancelOnDisconnect,
      timeoutSec,
    }: MessageRun & { readonly timeoutSec: number | undefined },
  ): Promise<StoppedTasks | null> {
    let answer: StoppedTasks | null = null;
    await this.#options.streams.openRun(response, {
      callerContext,
      sessionKey,
      timeoutMs: timeoutSec === undefined ? undefined : timeoutSec * 1_000,
      begin: async () => {
        const sent = await send();
        if (sent.taskId !== undefined) return sent;
        answer = sent;
        return null;
      },
      onGone: async (sent) => {
        if (cancelOnDisconnect) await cancelUnlessShared(callerContext, sent, message);
      },
    });
    return answer;
  }
}

/** Does not cancel a task that contains messages of other callers: messages merge into one task. */
async function cancelUnlessShared(
  { rota: { tasks } }: CallerContext,
  { taskId, merged }: SentMessage,
  message: unknown,
): Promise<void> {
  if (merged) return;
  try {
    // Messages that others added, on any node, are further lines of the task's message.
    if ((await tasks.get(taskId)).message === message) await tasks.cancel(taskId);
  } catch (error) {
    // The task has ended meanwhile, or the storage is unavailable. The caller has disconnected and cannot be notified.
    if (!(error instanceof RotaError)) throw error;
  }
}

/** Fires when the caller disconnects. The request cannot be used: it is closed as soon as its body has been read. */
function goneOf(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  whenClosed(response, () => gone.abort());
  return gone.signal;
}

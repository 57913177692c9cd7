import type { ServerResponse } from "node:http";
import type { SentMessage, SessionAnswer, SessionReply, StoppedTasks } from "../interface/sessions.ts";
import { RotaError } from "../model/errors.ts";
import { isTerminal } from "../model/task-state.ts";
import type { EventStreams } from "./event-stream.ts";
import type { TaskWaits } from "./task-waits.ts";
import type { Visitor } from "./visitor.ts";
import { whenClosed } from "./when-closed.ts";

export interface MessageRun {
  readonly visitor: Visitor;
  readonly sessionKey: string;
  /** What is said, as it was sent. */
  readonly message: unknown;
  readonly send: () => Promise<SessionAnswer>;
  /** Whether it is of no use any more once whoever sent it has gone away. */
  readonly cancelOnDisconnect: boolean;
}

export interface MessageRunsOptions {
  readonly waits: TaskWaits;
  readonly streams: EventStreams;
}

/** Requests that say something to a session and stay for what becomes of it. Room is made sure of before it is said. */
export class MessageRuns {
  readonly #options: MessageRunsOptions;

  constructor(options: MessageRunsOptions) {
    this.#options = options;
  }

  /** The task, once it has ended; or what is known of it, once the time is over or the server closes. */
  wait(
    response: ServerResponse,
    { visitor, message, send, cancelOnDisconnect, timeoutSec }: MessageRun & { readonly timeoutSec: number },
  ): Promise<{ ended: boolean; answer: SessionReply | SentMessage }> {
    const { waits } = this.#options;
    const gone = goneOf(response);
    return waits.holding(visitor, async () => {
      const sent = await send();
      if (sent.taskId === undefined) return { ended: true, answer: sent };
      const task = await waits.untilEnded(visitor, sent.taskId, { timeoutMs: timeoutSec * 1_000, gone });
      if (isTerminal(task.state)) return { ended: true, answer: task };
      if (gone.aborted && cancelOnDisconnect) await cancelUnlessShared(visitor, sent, message);
      return { ended: false, answer: { ...sent, state: task.state } };
    });
  }

  /** Its events as they happen, up to its end; null. What a stop word ended is an answer instead. */
  async stream(
    response: ServerResponse,
    {
      visitor,
      sessionKey,
      message,
      send,
      cancelOnDisconnect,
      timeoutSec,
    }: MessageRun & { readonly timeoutSec: number | undefined },
  ): Promise<StoppedTasks | null> {
    let answer: StoppedTasks | null = null;
    await this.#options.streams.openRun(response, {
      visitor,
      sessionKey,
      timeoutMs: timeoutSec === undefined ? undefined : timeoutSec * 1_000,
      begin: async () => {
        const sent = await send();
        if (sent.taskId !== undefined) return sent;
        answer = sent;
        return null;
      },
      onGone: (sent) => {
        if (cancelOnDisconnect) void cancelUnlessShared(visitor, sent, message);
      },
    });
    return answer;
  }
}

/** Whoever goes takes nothing along that others have said: what theirs was added to, or what was added to theirs. */
async function cancelUnlessShared(
  { rota: { tasks } }: Visitor,
  { taskId, merged }: SentMessage,
  message: unknown,
): Promise<void> {
  if (merged) return;
  try {
    // What others added, on whichever node, are lines of its message.
    if ((await tasks.get(taskId)).message === message) await tasks.cancel(taskId);
  } catch (error) {
    // It has ended meanwhile, or the storage is away: nobody is left to be told.
    if (!(error instanceof RotaError)) throw error;
  }
}

/** Fires when nobody is left to be answered. The request itself is closed as soon as its body has been read. */
function goneOf(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  whenClosed(response, () => gone.abort());
  return gone.signal;
}

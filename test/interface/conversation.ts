import type { Session, SessionMessage } from "../../src/interface/sessions.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import { Latch, until } from "../../src/testing/signals.ts";
import type { Open, Opened, OpenParams } from "./opened.ts";

export const KEY = "chat:7/é 1";

export interface Conversation extends Opened {
  /** The messages that the agent got, in order. */
  readonly messages: readonly string[];
  /** Everything that happened in the session. */
  readonly seen: readonly RotaEvent[];
  /** Sends a message at once, without a debounce unless the session has one. Returns the id of its task. */
  say(message: string, more?: Partial<SessionMessage>): Promise<string>;
  /** Lets the agent respond to its message. */
  answer(message: string): void;
  /** Resolves once the agent has received this many messages. */
  untilMessages(count: number): Promise<void>;
  session(): Promise<Session>;
}

/** A session with an agent `a` that returns when the test lets it, or ends when it is aborted. */
export async function openConversation(open: Open, params: OpenParams = {}): Promise<Conversation> {
  const { options = {}, ...rest } = params;
  const sessions = { debounceMs: 0, ...options.sessions };
  const opened = await open({ ...rest, options: { ...options, sessions } });
  const { api, rota } = opened;
  const messages: string[] = [];
  const latches = new Map<string, Latch>();
  rota.agent("a", async ({ message = "" }, { signal }) => {
    const latch = new Latch();
    latches.set(message, latch);
    messages.push(message);
    const stopped = new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    await Promise.race([latch.opened, stopped]);
    return `re: ${message}`;
  });
  const seen: RotaEvent[] = [];
  rota.onEvent((event) => void (event.sessionKey === KEY && seen.push(event)));
  return {
    ...opened,
    messages,
    seen,
    async say(message, more = {}) {
      const { taskId = "" } = await api.sessions.send(KEY, { message, agentId: "a", ...more });
      return taskId;
    },
    answer: (message) => latches.get(message)?.open(),
    untilMessages: (count) => until(() => messages.length >= count, `the agent to get ${count} messages`),
    session: () => api.sessions.get(KEY),
  };
}

import {
  DEFAULT_SESSION,
  DEFAULT_STEER_MS,
  DROP_POLICIES,
  SESSION_MODES,
  SESSION_RANGES,
} from "../model/session.ts";
import { numberIn, oneOf, section } from "./option-kinds.ts";

/** Defaults for sessions without settings of their own. */
export const sessions = section({
  mode: oneOf(SESSION_MODES)
    .default(DEFAULT_SESSION.mode)
    .describe(
      "`queue` or `followup`: a message waits for those before it; `interrupt`: it replaces all of them; `steer`: it waits, and the running task may take it; `collect`: it waits, and those after it are added to it.",
    ),
  cap: numberIn(SESSION_RANGES.cap)
    .default(DEFAULT_SESSION.cap)
    .describe("How many messages of a session may wait."),
  drop: oneOf(DROP_POLICIES)
    .default(DEFAULT_SESSION.drop)
    .describe(
      "What happens to one message too many: `old` cancels the message that waits longest, `new` refuses the new one (429).",
    ),
  debounceMs: numberIn(SESSION_RANGES.debounceMs)
    .default(DEFAULT_SESSION.debounceMs)
    .describe("Messages within this time of each other are merged into one task; 0: none are."),
  maxConcurrent: numberIn(SESSION_RANGES.maxConcurrent)
    .default(DEFAULT_SESSION.maxConcurrent)
    .describe("How many tasks of a session run at once, over all nodes."),
  steerMs: numberIn(SESSION_RANGES.steerMs)
    .default(DEFAULT_STEER_MS)
    .describe(
      "How long a running task may take a message in mode `steer`; then the message waits for its turn.",
    ),
});

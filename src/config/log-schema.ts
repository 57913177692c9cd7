import { LOG_LEVELS } from "../model/log.ts";
import { oneOf, section } from "./option-kinds.ts";

/** What a server writes to its log. A program hands over a log of its own instead. */
export const log = section({
  level: oneOf(LOG_LEVELS)
    .default("info")
    .describe(
      "Log level: `warn` logs failed attempts and callbacks, `info` also what the server does, `debug` everything, `silent` nothing.",
    ),
});

import { LOG_LEVELS } from "../model/log.ts";
import { oneOf, section } from "./option-kinds.ts";

/** The section `log`, for the server. A program passes a log of its own instead. */
export const log = section({
  level: oneOf(LOG_LEVELS)
    .default("info")
    .describe(
      "Log level: `warn` logs failed attempts and callbacks, `info` also what the server does, `debug` everything, `silent` nothing.",
    ),
});

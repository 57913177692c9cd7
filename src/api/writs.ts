import { z } from "zod";
import { WRITS } from "../model/input/writ-schema.ts";
import { errorAnswersWith } from "./error.ts";
import { requestSchema } from "./input-schema.ts";

const OUTPUT_EXAMPLE = `[/schedule create in 1 hour: review the deploy]
OK: scheduled #17 in 1 hour (2026-05-08 14:23) → research
  message: review the deploy
[END SCHEDULE]`;

const writInput = requestSchema(WRITS);

export const writAnswer = z
  .strictObject({
    ok: z.boolean().describe("Whether all writs succeeded."),
    output: z.string().describe("A block for each line, for the agent to read."),
  })
  .meta({
    id: "WritAnswer",
    description: "The outcome. With `Accept: text/plain` the response is `output` alone.",
    examples: [
      { ok: true, output: OUTPUT_EXAMPLE },
      {
        ok: false,
        output: "[/schedule cancel 42]\nERR: no schedule #42\n[END SCHEDULE]",
      },
    ],
  });

// ------------------------------------------------------------------------------------------------------ operations

const errorAnswers = errorAnswersWith({
  invalid_field: "`text` must be a text with lines like /schedule list, not 5",
  not_found: 'agent "reserch" not found: did you mean "research"?',
});

export const carryOutWrits = {
  operationId: "carryOutWrits",
  tags: ["schedules"],
  summary: "Carry out writs",
  description:
    "`/schedule PHRASE: MESSAGE` creates a schedule of the agent; `/schedule list`, `cancel N`, `pause N` and `resume N` list and change the schedules of the agent. The response has a block for each line, also for a line that failed. With `Accept: text/plain` the response is the blocks alone.",
  body: writInput,
  response: {
    200: {
      description: "The outcome of a writ.",
      content: {
        "application/json": { schema: writAnswer },
        "text/plain": { schema: z.string().meta({ examples: [`${OUTPUT_EXAMPLE}\n`] }) },
      },
    },
    ...errorAnswers("not_found", "scheduler_disabled", "draining", "storage_unavailable"),
  },
};

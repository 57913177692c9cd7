import { z } from "zod";
import { errorAnswersWith } from "./error.ts";
import { orNull } from "./nullable.ts";

const OUTPUT_EXAMPLE = `[/schedule create in 1 hour: review the deploy]
OK: scheduled #17 in 1 hour (2026-05-08 14:23) → research
  message: review the deploy
[END SCHEDULE]`;

const writInput = z
  .strictObject(
    orNull({
      agent: z
        .string()
        .exactOptional()
        .describe("Whose schedules these are; left out: `index`. It sees and touches its own alone."),
      session_key: z
        .string()
        .nullable()
        .exactOptional()
        .describe("The session that this was written in: the runs of what it schedules are part of it."),
      conversation_id: z
        .union([z.string(), z.int()])
        .nullable()
        .exactOptional()
        .describe(
          "The conversation that this was written in, as the agent's side knows it: runs return there.",
        ),
      text: z
        .string()
        .describe(
          "Its lines that begin with `/schedule` are carried out, one after the other: 50 at most, in 65536 characters.",
        ),
    }),
  )
  .meta({
    id: "WritRequest",
    description: "What an agent asks for.",
    examples: [
      { agent: "research", text: "/schedule in 1 hour: review the deploy" },
      { text: "/schedule every monday at 09:00: sum up\n/schedule list" },
      { text: "/schedule pause 42\n/schedule cancel 43" },
      { text: "/schedule in 1 hour: ask again", session_key: "chat:42", conversation_id: "c-42" },
    ],
  });

export const writAnswer = z
  .strictObject({
    ok: z.boolean().describe("Whether all of it was done."),
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
  summary: "Carry out what an agent wrote",
  description:
    "`/schedule PHRASE: MESSAGE` makes a schedule of the agent's own; `/schedule list`, `cancel N`, `pause N` and `resume N` are about those it has. Each line is answered by a block, also when it could not be done. With `Accept: text/plain` the answer is the blocks alone.",
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

import { z } from "zod";
import { errorAnswers } from "./error.ts";

const check = z
  .strictObject({
    name: z
      .string()
      .describe(
        "What was looked at: `storage`, `clock`, `counters`, `schedules`, `rollups`, `audit`, `config`.",
      ),
    ok: z.boolean(),
    summary: z.string().describe("What was found, in a sentence: also what is well."),
    findings: z.array(z.string()).describe("What is wrong, one sentence each, the first hundred."),
  })
  .meta({
    id: "DoctorCheck",
    description: "One thing that was looked at.",
    examples: [
      { name: "counters", ok: true, summary: "Every counter says what the rows say.", findings: [] },
    ],
  });

const doctorReport = z
  .strictObject({ ok: z.boolean().describe("Whether nothing is wrong."), checks: z.array(check) })
  .meta({
    id: "DoctorReport",
    description: "What an examination found.",
    examples: [
      {
        ok: true,
        checks: [{ name: "clock", ok: true, summary: "The clocks agree.", findings: [] }],
      },
    ],
  });

const STREAM_EXAMPLE = `event: open
data: {}

event: progress
data: {"check":"counters","done":20000,"total":2000000}

event: report
data: {"ok":true,"checks":[]}

`;

export const getDoctor = {
  operationId: "getDoctor",
  tags: ["node"],
  summary: "Look for what cannot be",
  description:
    "Counts every counter anew and proves that every moment of every schedule has left a run since its last change, that the statistics over time add up, and that the chains of hashes of the audit log hold. Changes nothing. It looks at every row, in slices between which other work goes on, and stops when the connection is closed. A node examines once at a time: a request that comes meanwhile gets the same report. With `Accept: text/event-stream` it says how far it is: events `progress` `{check, done, total}`, and `report` or `error` at the end.",
  response: {
    200: {
      description: "What was found. Or how far it is, and then what was found, as events.",
      content: {
        "application/json": { schema: doctorReport },
        "text/event-stream": { schema: z.string().meta({ examples: [STREAM_EXAMPLE] }) },
      },
    },
    ...errorAnswers("storage_unavailable"),
  },
};

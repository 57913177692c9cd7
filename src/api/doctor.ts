import { z } from "zod";
import { errorAnswers } from "./error.ts";

const check = z
  .strictObject({
    name: z
      .string()
      .describe("The check: `storage`, `clock`, `counters`, `schedules`, `rollups`, `audit`, `config`."),
    ok: z.boolean(),
    summary: z.string().describe("The result in a sentence."),
    findings: z.array(z.string()).describe("What is wrong, one sentence each, the first hundred."),
  })
  .meta({
    id: "DoctorCheck",
    description: "One check.",
    examples: [{ name: "counters", ok: true, summary: "Every counter equals its rows.", findings: [] }],
  });

const doctorReport = z
  .strictObject({ ok: z.boolean().describe("Whether no check found anything."), checks: z.array(check) })
  .meta({
    id: "DoctorReport",
    description: "The report of the doctor.",
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
  summary: "Check the stored data",
  description:
    "Checks the stored data, and changes nothing: recounts every counter, and checks that every due time of every schedule since its last change has a run, that the statistics over time add up, and that the hash chains of the audit log are valid. It reads every row in small steps, so that other work continues, and stops when the connection is closed. A node runs one check at a time: a second request gets the same report. With `Accept: text/event-stream` it reports progress: events `progress` `{check, done, total}`, and `report` or `error` at the end.",
  response: {
    200: {
      description: "The report; or a stream with events of the progress, and then the report.",
      content: {
        "application/json": { schema: doctorReport },
        "text/event-stream": { schema: z.string().meta({ examples: [STREAM_EXAMPLE] }) },
      },
    },
    ...errorAnswers("storage_unavailable"),
  },
};

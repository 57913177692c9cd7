import { z } from "zod";
import { errorAnswers } from "./error.ts";

const check = z
  .strictObject({
    name: z.string().describe("What was looked at: `storage`, `clock`, `counters`, `schedules`, `config`."),
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

export const getDoctor = {
  operationId: "getDoctor",
  tags: ["node"],
  summary: "Look for what cannot be",
  description:
    "Counts every counter anew and proves that every moment of every schedule has left a run since its last change. Changes nothing; costs what the backlog costs, so ask for it now and then, not all the time.",
  response: { 200: doctorReport, ...errorAnswers("storage_unavailable") },
};

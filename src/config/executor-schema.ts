import { z } from "zod";
import { executorUrlFault } from "../model/executor-url.ts";
import { isObject } from "../model/field-checks.ts";
import { dotted, must, or, section } from "./option-kinds.ts";

const EXECUTOR_TYPES = ["echo", "http"] as const;

const httpUrl = z
  .string({ error: must("be an http or https URL") })
  .refine((url) => executorUrlFault(url) === null, {
    // The value may hold a password, so that the sentence does not repeat it.
    error: ({ path, input }) => `\`${dotted(path)}\` must ${executorUrlFault(input)}`,
  });

/** Who does the work: of a kind of task, or of an agent. */
export const executor = z.discriminatedUnion(
  "type",
  [
    section({ type: z.literal("echo") }),
    section({
      type: z.literal("http"),
      url: httpUrl,
      headers: z
        .record(z.string(), z.string({ error: must("be a string") }), {
          error: must("be an object of strings"),
        })
        .exactOptional(),
    }),
  ],
  { error: executorFault },
);

function executorFault(fault: Parameters<ReturnType<typeof must>>[0]): string {
  if (!isObject(fault.input)) return must(`be an object whose \`type\` is ${or(EXECUTOR_TYPES)}`)(fault);
  return must(`be ${or(EXECUTOR_TYPES)}`)({ ...fault, input: fault.input["type"] });
}

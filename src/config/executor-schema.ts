import { z } from "zod";
import {
  EXECUTOR_FIELDS,
  EXECUTOR_TYPES,
  type ExecutorConfig,
  type ExecutorField,
  type ExecutorType,
  workerByKindFault,
} from "../model/executor-config.ts";
import { isObject, joinWithOr } from "../model/input/field-checks.ts";
import { choiceFault } from "../model/input/value-faults.ts";
import { dotted, must, section } from "./option-kinds.ts";

const [first, ...others] = EXECUTOR_TYPES.map(typeSchema) as [ExecutorSchema, ...ExecutorSchema[]];

/** The executor of an agent. */
export const executor = z.discriminatedUnion("type", [first, ...others], {
  error: executorFault,
}) as unknown as z.ZodType<ExecutorConfig, ExecutorConfig>;

/** The executor of a kind of task. */
export const executorOfKind = executor.refine(({ type }) => type !== "worker", {
  error: ({ path = [] }) => workerByKindFault(dotted(path)),
});

type ExecutorSchema = ReturnType<typeof typeSchema>;

function typeSchema(type: ExecutorType) {
  const fields: [string, ExecutorField][] = Object.entries(EXECUTOR_FIELDS[type]);
  return section({
    type: z.literal(type),
    ...Object.fromEntries(fields.map(([name, field]) => [name, valueSchema(field)])),
  });
}

function valueSchema({ required, fault }: ExecutorField) {
  const value = z.unknown().refine((given) => fault(given) === null, {
    error: ({ path, input }) =>
      `\`${dotted(path)}\` ${input === undefined ? "is missing: it must" : "must"} ${fault(input)}`,
  });
  return required === true ? value : value.exactOptional();
}

function executorFault(fault: Parameters<ReturnType<typeof must>>[0]): string {
  if (!isObject(fault.input))
    return must(`be an object whose \`type\` is ${joinWithOr(EXECUTOR_TYPES)}`)(fault);
  return `\`${dotted(fault.path)}\` must ${choiceFault(fault.input["type"], EXECUTOR_TYPES)}`;
}

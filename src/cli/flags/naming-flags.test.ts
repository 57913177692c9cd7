import { expect, test } from "vitest";
import { RotaError } from "../../model/errors.ts";
import { invalidField } from "../../model/input/field-checks.ts";
import { namingFlags } from "./naming-flags.ts";

const FLAGS = { runAt: "--run-at", agentId: "--agent" };

test("a message names the flag of its field, and stays if the flag has the same name", () => {
  expect(namingFlags(invalidField("runAt", "`runAt` is wrong"), FLAGS)).toMatchObject({
    message: "`runAt` is wrong (--run-at)",
  });
  const other = invalidField("lane", "`lane` is wrong");
  expect(namingFlags(other, FLAGS)).toBe(other);
  expect(namingFlags("text", FLAGS)).toBe("text");
});

test("of several faults each names its flag", () => {
  const faults = [
    { field: "runAt", message: "`runAt` is wrong" },
    { field: "lane", message: "`lane` is wrong" },
    { field: "agentId", message: "`agentId` costs $&" },
  ];
  const message = `the task has 3 faults:${faults.map((fault) => `\n- ${fault.message}`).join("")}`;
  const error = new RotaError("invalid_field", message, { details: { field: "runAt", faults } });
  expect((namingFlags(error, FLAGS) as Error).message).toBe(
    "the task has 3 faults:\n- `runAt` is wrong (--run-at)\n- `lane` is wrong\n- `agentId` costs $& (--agent)",
  );
});

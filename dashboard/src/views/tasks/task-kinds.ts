/** What can be submitted, with its own fields; the first one is required. All other fields of a task are common to the kinds. */
export const KINDS = {
  message: ["message"],
  instruction: ["instruction", "llmConfig"],
  action: ["action", "tabId", "ref", "selector", "params"],
  payload: ["payload"],
  batch: ["tasks"],
} as const;

export type NewKind = keyof typeof KINDS;

/** Common fields that are shown at first. */
export const OFTEN: readonly string[] = ["agentId", "priority", "parallelism"];

/** Two tasks, of which one waits for the other. */
export const BATCH_EXAMPLE = [
  { key: "read", instruction: "Read the page" },
  { instruction: "Sum it up", dependsOn: ["read"] },
];

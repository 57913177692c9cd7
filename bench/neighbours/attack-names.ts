/** What one key of another tenant does to the node, in the order in which it is measured. */
export const ATTACKS = [
  "memory",
  "silent-host",
  "failing-receiver",
  "reads",
  "far-tasks",
  "batches",
  "hanging-tasks",
  "fast-schedules",
  "previews",
  "new-agents",
  "big-bodies",
] as const;
export type AttackName = (typeof ATTACKS)[number];

import type { AttackName } from "../attack-names.ts";
import type { Attack } from "./attack.ts";
import { memoryAttack } from "./memory.ts";
import { batchesAttack, farTasksAttack, hangingTasksAttack } from "./queues.ts";
import { readsAttack } from "./reads.ts";
import { bigBodiesAttack, newAgentsAttack, previewsAttack } from "./requests.ts";
import { fastSchedulesAttack } from "./schedules.ts";
import { failingReceiverAttack, silentHostAttack } from "./webhooks.ts";

export const NEW_ATTACK: Readonly<Record<AttackName, () => Attack>> = {
  memory: memoryAttack,
  "silent-host": silentHostAttack,
  "failing-receiver": failingReceiverAttack,
  reads: readsAttack,
  "far-tasks": farTasksAttack,
  batches: batchesAttack,
  "hanging-tasks": hangingTasksAttack,
  "fast-schedules": fastSchedulesAttack,
  previews: previewsAttack,
  "new-agents": newAgentsAttack,
  "big-bodies": bigBodiesAttack,
};

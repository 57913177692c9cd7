import type { TaskKind } from "../task.ts";
import { isTaskId } from "../task-id.ts";
import { codeList, invalidField } from "./field-checks.ts";
import {
  agentId,
  anyLane,
  anyObject,
  boolean,
  callbackUrl,
  filledText,
  json,
  object,
  priority,
  sessionKey,
  text,
  textLike,
  time,
  timeout,
} from "./kinds.ts";
import { RETRY_POLICY_FIELDS } from "./retry-policy-schema.ts";
import { type FieldTable, type Kind, optional, type Schema } from "./schema.ts";

/** The most dependencies of a task. */
export const DEPENDS_ON_MAX = 100;
const KEY = /^(?!\s)[^\p{Cc}\p{Cs}]{1,128}(?<!\s)$/u;
const CONCURRENCY_KEY = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

export function isConcurrencyKey(key: string): boolean {
  return CONCURRENCY_KEY.test(key);
}

/** The fields of each kind. The first one makes a task one of that kind. */
export const KIND_FIELDS = {
  action: {
    action: optional(filledText(), { description: "What to do in a browser tab.", flag: "--action <name>" }),
    tabId: optional(text(), { description: "With `action`: the tab.", flag: "--tab <id>" }),
    ref: optional(text(), {
      description: "With `action`: the element, by its reference.",
      flag: "--ref <ref>",
    }),
    selector: optional(text(), {
      description: "With `action`: the element, by a CSS selector.",
      flag: "--selector <css>",
    }),
    params: optional(anyObject(), {
      description: "With `action`: further parameters.",
      flag: "--params <json>",
    }),
  },
  instruction: {
    instruction: optional(filledText(), {
      description: "What an agent is to do, in words.",
      flag: "--instruction <text>",
    }),
    llmConfig: optional(anyObject(), { description: "With `instruction`: settings of the model." }),
  },
  message: {
    message: optional(filledText(), {
      description: "A message to an agent.",
      flag: "--message <text>",
    }),
  },
  custom: {
    payload: optional(json(), {
      description: "Any JSON, for your own executor.",
      flag: "--payload <json>",
    }),
  },
} as const satisfies Record<TaskKind, FieldTable>;

/** The fields that tasks of all kinds have. */
export const COMMON_FIELDS = {
  agentId: optional(agentId(), {
    description: "The agent that runs it; required for an `action`.",
    default: "`index`",
    flag: "--agent <id>",
  }),
  priority: optional(priority(), {
    description: "Lower goes first: `critical` 0, `high` 1, `normal` 2, `low` 3, or any integer.",
    default: "`normal`",
    flag: "--priority <priority>",
  }),
  deadline: optional(time(), {
    description: "When the whole task must have ended, waiting and retries included.",
    flag: "--deadline <time>",
  }),
  timeout: optional(timeout(), {
    description: "Milliseconds for each attempt, 1 000 to 600 000.",
    flag: "--timeout <span>",
  }),
  runAt: optional(time(), { description: "Earliest start.", flag: "--run-at <time>" }),
  retryPolicy: optional(object(RETRY_POLICY_FIELDS), {
    description: "How it is retried after a failure.",
  }),
  dependsOn: optional(dependencies(), {
    description: "Tasks that must be done before it starts, by id, or by `key` in a batch.",
  }),
  idempotencyKey: optional(
    textLike((key) => KEY.test(key), "1 to 128 characters without spaces at its ends"),
    {
      description:
        "The same key within 24 hours gives the task that it made first; also as the header `Idempotency-Key`.",
    },
  ),
  callbackUrl: optional(callbackUrl(), {
    description: "URL that receives a `POST` of the task when it has ended.",
    flag: "--callback <url>",
  }),
  webhookUrl: optional(callbackUrl(), { description: "Another name for `callbackUrl`." }),
  lane: optional(anyLane(), { description: "The pool of concurrency it runs in.", flag: "--lane <name>" }),
  sessionKey: optional(sessionKey(), {
    description: "The conversation it is part of: tasks of one start in the order they were accepted.",
    flag: "--session <key>",
  }),
  preemptible: optional(boolean(), {
    description: "A `critical` task that finds no free slot may pre-empt it; it then runs again.",
    flag: "--preemptible",
  }),
  concurrencyKey: optional(
    textLike(
      (key) => key === "" || isConcurrencyKey(key),
      '1 to 256 characters without control characters, or "" for none',
    ),
    {
      description:
        'Tasks with the same key run one at a time. An `action` with a `tabId` has `tab:<tabId>`; `""`: none.',
      flag: "--concurrency-key <key>",
    },
  ),
  metadata: optional(anyObject(), {
    description: "Your own data: stored and returned with the task.",
    flag: "--metadata <json>",
  }),
} as const;

const { action, instruction, message, custom } = KIND_FIELDS;
const ONCE = "a task runs once; send `schedule` to POST /v1/schedules for what is to run again and again";

/** One of them makes the kind of a task. */
export const ONE_OF = codeList(["action", "instruction", "message", "payload"]);

/** The input of a task. */
export const TASK = {
  name: "NewTask",
  noun: "task",
  description:
    "One unit of work: exactly one of `action`, `instruction`, `message` and `payload`, and what is common to all four.",
  fields: { ...action, ...instruction, ...message, ...custom, ...COMMON_FIELDS },
  // A caller with these fields wants a schedule.
  elsewhere: { cron: ONCE, schedule: ONCE, every: ONCE, tz: ONCE, timezone: ONCE },
  examples: [
    {
      agentId: "research",
      instruction: "Summarise the news",
      llmConfig: { model: "small" },
      priority: "high",
      timeout: 60_000,
      metadata: { user: 42 },
    },
    {
      agentId: "crawler",
      action: "type",
      tabId: "8f9c7d4e",
      ref: "e12",
      params: { text: "Alan Turing" },
      deadline: "2030-01-31T09:00:00Z",
    },
    { agentId: "crawler", action: "click", tabId: "8f9c7d4e", selector: "#send", priority: 5 },
    { message: "Happy new year", runAt: "2100-01-01T00:00:00Z", lane: "main" },
    {
      payload: { n: 1 },
      retryPolicy: {
        maxRetries: 2,
        backoffMs: 500,
        backoffMultiplier: 3,
        maxBackoffMs: 9_000,
        jitter: 0.1,
      },
      callbackUrl: "https://example.com/hooks/done",
    },
    { agentId: "support", message: "Where is my parcel?", sessionKey: "user:42" },
    { agentId: "writer", instruction: "Write it down", dependsOn: ["tsk_019a8f6e"] },
    { agentId: "archivist", instruction: "Sort the archive", priority: "low", preemptible: true },
    { agentId: "deployer", instruction: "Deploy the site", concurrencyKey: "deploy:site" },
  ],
} as const satisfies Schema;

/** A task that is submitted with others can have a key, which they can depend on. */
export const KEYED_TASK = {
  ...TASK,
  fields: {
    ...TASK.fields,
    key: optional(
      textLike(
        (key) => KEY.test(key) && !isTaskId(key),
        "1 to 128 characters without spaces at its ends, and not like the id of a task",
      ),
      { description: "A name by which others of the batch can depend on it." },
    ),
  },
} as const satisfies Schema;

/** Ids of tasks, or keys; without duplicates. */
function dependencies(): Kind<readonly string[]> {
  return {
    shape: { type: "list", of: { type: "text" } },
    read: (names, field) => {
      if (!Array.isArray(names) || names.some((name) => typeof name !== "string" || name === "")) {
        throw invalidField(field, `\`${field}\` must be an array of the ids of tasks, or of keys in a batch`);
      }
      const once = [...new Set<string>(names)];
      if (once.length <= DEPENDS_ON_MAX) return once;
      throw invalidField(
        field,
        `\`${field}\` names ${once.length} tasks, and may name ${DEPENDS_ON_MAX}: let one task depend on a group of them, and this one on that task`,
      );
    },
  };
}

import type { UserExecutorFields } from "../executor-config.ts";
import { TURNS_MAX } from "../turn.ts";
import { anyObject, choice, number, text } from "./kinds.ts";
import { type Field, optional, required } from "./schema.ts";

const headers = optional(anyObject(), {
  description: 'Header fields of every request, such as `{"authorization": "Bearer …"}`.',
});

/** The fields of each executor that callers may give an agent. `checkExecutorConfig` checks them. */
export const EXECUTOR_VARIANTS: {
  readonly [Type in keyof UserExecutorFields]: { readonly [Name in UserExecutorFields[Type]]: Field };
} = {
  echo: {},
  http: {
    url: required(text(), { description: "Gets each task by POST, as JSON. Its response is the result." }),
    headers,
  },
  "tab-action": {
    url: required(text(), {
      description: "The server of the tabs, or with `pinchtab` the one that knows them.",
    }),
    resolver: optional(choice(["fixed", "pinchtab"]), {
      description: "How the server of a tab is found.",
      default: "`fixed`: `url` serves all tabs",
    }),
    cacheSec: optional(number({ min: 0, max: 3_600, integer: false }), {
      description: "For how many seconds `pinchtab` caches the instance of a tab.",
      default: "5",
    }),
    headers,
  },
  chat: {
    url: required(text(), { description: "The agent, which is called at `/chat` below it." }),
    headers,
  },
  openai: {
    baseUrl: required(text(), { description: "An API like that of OpenAI. Usually ends in `/v1`." }),
    model: required(text(), { description: "The name of the model." }),
    system: optional(text(), { description: "The system prompt of each task." }),
    temperature: optional(number({ min: 0, max: 2, integer: false }), { description: "As the API has it." }),
    maxTokens: optional(number({ min: 1, max: 10_000_000 }), {
      description: "The most tokens of a response.",
    }),
    history: optional(number({ min: 0, max: TURNS_MAX }), {
      description: "How many earlier turns of the session the model gets with a task.",
      default: "20",
    }),
    request: optional(anyObject(), {
      description: "Further fields of the request, with their names in the API.",
    }),
    headers,
  },
  worker: {},
};

import type { RESERVED_MODEL_FIELDS } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import type { ExecutorContext } from "./executor.ts";
import type { ModelSettings } from "./model-settings.ts";
import { readHistory } from "./openai-history.ts";
import { textOf } from "./task-text.ts";

/**
 * The request to a model for a task, with the earlier turns of its session. `llmConfig` of the task overrides the configuration.
 * A field that either sets to null is omitted, for servers that do not know it.
 */
export async function modelRequest(
  task: Task,
  settings: ModelSettings,
  context: ExecutorContext,
): Promise<Readonly<Record<string, unknown>>> {
  const { model, system, temperature, maxTokens, request } = settings;
  const content = textOf(task, "openai");
  const history = await readHistory(task, content, { settings, context });
  const asked = {
    model,
    temperature,
    max_tokens: maxTokens,
    stream_options: { include_usage: true },
    ...request,
    ...task.llmConfig,
  };
  const said = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
  const own = {
    messages: [
      ...(system === undefined ? [] : [{ role: "system", content: system }]),
      ...history,
      { role: "user", content },
    ],
    stream: true,
  } satisfies Record<(typeof RESERVED_MODEL_FIELDS)[number], unknown>;
  return { ...Object.fromEntries(said), ...own };
}

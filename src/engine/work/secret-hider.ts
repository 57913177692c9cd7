import { secretsOf } from "../../model/input/masked-input.ts";
import { Redactor } from "../../model/redactor.ts";
import type { TaskSpec } from "../../model/task.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { hideValuesInJson, valueHider } from "../../model/text/mask.ts";
import { hideTaskTokens } from "../../model/text/task-token-mask.ts";

interface Hider {
  /** The redactor it was made with. The configuration may replace it, with other names of secrets. */
  readonly redactor: Redactor;
  /** Null: the task has no secrets. */
  readonly hide: ((text: string) => string) | null;
}

/** Masks the secrets of tasks in what their executors say about them. */
export class SecretHider {
  readonly #redactor: () => Redactor;
  /** The function that masks the secrets of a task. It is kept, since a task may log many lines. */
  readonly #hiders = new WeakMap<TaskSpec, Hider>();

  /** `redactor` left out: masks the secrets of `llmConfig` only. */
  constructor(redactor?: () => Redactor) {
    const always = new Redactor([]);
    this.#redactor = redactor ?? (() => always);
  }

  /** Agents often repeat their input in errors and log lines, which are stored and shown. */
  hide({ spec }: Pick<TaskRecord, "spec">, text: string): string {
    const redactor = this.#redactor();
    let hider = this.#hiders.get(spec);
    if (hider?.redactor !== redactor) {
      const secrets = secretsOf(spec, redactor);
      hider = { redactor, hide: secrets.length === 0 ? null : valueHider(secrets) };
      this.#hiders.set(spec, hider);
    }
    return hideTaskTokens(hider.hide === null ? text : hider.hide(text));
  }

  /** The result of a model never needs the API keys of its `llmConfig`. Other secrets may be what the next task needs. */
  hideModelSecrets({ spec: { work } }: Pick<TaskRecord, "spec">, answer: unknown): unknown {
    if (work.kind !== "instruction" || work.llmConfig === undefined) return answer;
    const secrets = this.#redactor().secretsIn("llmConfig", work.llmConfig);
    return secrets.length === 0 ? answer : hideValuesInJson(answer, secrets);
  }
}

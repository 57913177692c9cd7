import { invalidField, quoted } from "../../model/input/field-checks.ts";
import { choice, name, text as textKind } from "../../model/input/kinds.ts";
import { optional, required } from "../../model/input/schema.ts";
import { isTerminal } from "../../model/task-state.ts";
import { type ToolAnswer, text } from "../answer.ts";
import { isOwnSchedule, isOwnTask, sessionImpact } from "../impact.ts";
import { defineTool, type ToolCall } from "../tool.ts";
import { harmless, quoteField } from "../untrusted.ts";
import { workOf } from "./list.ts";

const WHAT = ["cancel", "retry", "pause", "resume", "run", "delete", "stop"] as const;
type What = (typeof WHAT)[number];

interface ChangeArguments {
  readonly id: string;
  readonly confirm?: string;
}

export const change = defineTool({
  name: "change",
  description:
    "cancel, retry: a task. pause, resume, run, delete: a schedule. stop: what a session runs. Asks before it ends or deletes work of others",
  access: "submit",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  fields: {
    what: required(choice(WHAT)),
    id: required(name("the id of a task or a schedule, or the key of a session"), {
      description: "tsk_…, the number of a schedule, or a session",
    }),
    confirm: optional(textKind(), { description: "The id again, if asked for" }),
  },
  async run({ what, ...args }, call) {
    const answer = await CHANGES[what](args, call);
    if (answer.done) {
      const subject = what === "stop" ? args.id : args.id.replace(/^#/, "");
      call.changed({ tool: `change ${what}`, subject, isChosen: what === "stop" });
    }
    return answer.answer;
  },
});

interface Changed {
  /** Whether something was changed. */
  readonly done: boolean;
  readonly answer: ToolAnswer;
}

const CHANGES: Readonly<Record<What, (args: ChangeArguments, call: ToolCall) => Promise<Changed>>> = {
  async cancel({ id, confirm }, call) {
    const task = await call.rota.tasks.get(id);
    if (!isTerminal(task.state) && !isOwnTask(task, call)) {
      const { state, agentId, startedAt, attempts, usage } = task;
      const since = startedAt === undefined ? "" : `, started ${startedAt}`;
      const spent = usage === undefined ? "" : `, ${usage.inputTokens + usage.outputTokens} tokens used`;
      const impact = `Cancel task ${id} of agent ${quoteField(agentId)}: it is ${state}${since}, attempts: ${attempts.length}${spent}.`;
      const confirmation = await call.confirm({ id, impact, confirm });
      if (!confirmation.go) return { done: false, answer: confirmation.answer };
    }
    await call.rota.tasks.cancel(id);
    return done(`${id} cancelled`);
  },

  async retry({ id }, { rota }) {
    const { taskId, state, warnings = [] } = await rota.tasks.retry(id);
    return done([`${taskId} ${state} again`, ...warnings.map(harmless)].join("\n"));
  },

  async pause({ id }, { rota }) {
    await rota.schedules.update(scheduleId(id), { status: "paused" });
    return done(`Schedule #${scheduleId(id)} paused`);
  },

  async resume({ id }, { rota }) {
    await rota.schedules.update(scheduleId(id), { status: "active" });
    return done(`Schedule #${scheduleId(id)} active`);
  },

  async run({ id }, { rota }) {
    const { ran, reason } = await rota.schedules.run(scheduleId(id));
    return {
      done: ran,
      answer: text(ran ? `Schedule #${scheduleId(id)} runs` : `It did not run: ${reason}`),
    };
  },

  async delete({ id, confirm }, call) {
    const { schedules, runs } = call.rota;
    const number = scheduleId(id);
    const found = await schedules.get(number);
    if (!isOwnSchedule(found, call)) {
      const { schedule_phrase: phrase, agent_id: agent, run_count: count, last_run_id: last } = found;
      const isRunning = last !== 0 && (await runs.get(last).catch(() => null))?.status === "running";
      const impact = `Delete schedule #${number} (${quoteField(phrase, 60)} → ${quoteField(agent)}, ${quoteField(workOf(found), 60)}) and its runs: it ran ${count} times${isRunning ? "; its task that is not done is cancelled" : ""}.`;
      const confirmation = await call.confirm({ id, impact, confirm });
      if (!confirmation.go) return { done: false, answer: confirmation.answer };
    }
    await schedules.delete(number);
    return done(`Schedule #${number} deleted`);
  },

  async stop({ id, confirm }, call) {
    const { sessions } = call.rota;
    const impact = `Stop what session ${quoteField(id)} runs: ${sessionImpact(await sessions.get(id))}.`;
    const confirmation = await call.confirm({ id, impact, confirm });
    if (!confirmation.go) return { done: false, answer: confirmation.answer };
    const { stopped, cancelled } = await sessions.stop(id);
    const ended = [...stopped, ...cancelled];
    return {
      done: ended.length > 0,
      answer: text(ended.length === 0 ? "Nothing ran" : `Stopped ${ended.join(", ")}`),
    };
  },
};

function done(line: string): Changed {
  return { done: true, answer: text(line) };
}

/** Schedules are listed as `#7`. */
function scheduleId(id: string): number {
  const digits = /^#?([1-9]\d{0,14})$/.exec(id)?.[1];
  if (digits !== undefined) return Number(digits);
  throw invalidField("id", `\`id\` must be the number of a schedule, like "7", not ${quoted(id)}`);
}

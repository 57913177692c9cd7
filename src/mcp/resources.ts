import { ResourceNotFoundError } from "@modelcontextprotocol/server";
import { RotaError } from "../model/errors.ts";
import { ACCEPTED_FORMS } from "../schedules/accepted-forms.ts";
import type { McpRota } from "./backend.ts";
import { taskAnswer } from "./task-answer.ts";
import { timeText, workOf } from "./tools/list.ts";
import { nameText, quoteField, TEXT_BYTES, untrusted } from "./untrusted.ts";

const PHRASES = "rota://help/phrases";
const MIME = "text/plain";

export const RESOURCES = [
  { uri: PHRASES, name: "phrases", description: "The forms that `when` of schedule takes", mimeType: MIME },
];

export const RESOURCE_TEMPLATES = [
  { uriTemplate: "rota://tasks/{id}", name: "task", description: "A task with its result", mimeType: MIME },
  { uriTemplate: "rota://sessions/{key}", name: "session", description: "A session", mimeType: MIME },
  { uriTemplate: "rota://schedules/{id}", name: "schedule", description: "A schedule", mimeType: MIME },
];

const READERS: Readonly<Record<string, (rota: McpRota, id: string) => Promise<string>>> = {
  async tasks({ tasks }, id) {
    const { content } = taskAnswer(await tasks.get(id), { full: true });
    return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  },

  async sessions({ sessions }, key) {
    const session = await sessions.get(key);
    const lines = Object.entries(session).map(([name, value]) => `${name}: ${shown(value)}`);
    return lines.join("\n");
  },

  async schedules({ schedules }, id) {
    const schedule = await schedules.get(/^[1-9]\d{0,14}$/.test(id) ? Number(id) : 0);
    const {
      status,
      agent_id: agent,
      schedule_phrase: phrase,
      tz,
      next_fire_at: next,
      run_count: count,
    } = schedule;
    const lines = [
      `#${schedule.id} ${status}${schedule.name === null ? "" : ` ${quoteField(schedule.name)}`}`,
      `when: ${quoteField(phrase)} (${tz})`,
      `agent: ${nameText(agent)}`,
      `next: ${next === 0 ? "never" : timeText(next)}`,
      ...(schedule.until === undefined ? [] : [`ends: ${timeText(schedule.until)}`]),
      `runs: ${count}, last: ${schedule.last_status ?? "none"}`,
      ...(schedule.paused_reason === null ? [] : [`paused: ${quoteField(schedule.paused_reason)}`]),
      ...(schedule.last_error === null ? [] : [`last error: ${quoteField(schedule.last_error)}`]),
    ];
    const more = `GET /v1/schedules/${schedule.id} has all of it`;
    const of = `schedule ${schedule.id}`;
    lines.push(untrusted(workOf(schedule), { what: "message", of, bytesMax: TEXT_BYTES.short, more }));
    return lines.join("\n");
  },
};

/** The text of a resource. Throws the error of the protocol for one that does not exist. */
export async function readResource(uri: string, rota: McpRota) {
  const text = uri === PHRASES ? phrasesText() : await readByTemplate(uri, rota);
  return { contents: [{ uri, mimeType: MIME, text }] };
}

async function readByTemplate(uri: string, rota: McpRota): Promise<string> {
  const [, folder = "", part = ""] = /^rota:\/\/([a-z]+)\/([^/?#]+)$/.exec(uri) ?? [];
  const read = Object.hasOwn(READERS, folder) ? READERS[folder] : undefined;
  const id = decoded(part);
  if (read === undefined || id === null) throw new ResourceNotFoundError(uri);
  try {
    return await read(rota, id);
  } catch (error) {
    const isMissing = error instanceof RotaError && ["not_found", "invalid_field"].includes(error.code);
    throw isMissing ? new ResourceNotFoundError(uri) : error;
  }
}

function phrasesText(): string {
  return ACCEPTED_FORMS.map(({ form, example, meaning }) => `${form} – "${example}": ${meaning}`).join("\n");
}

function shown(value: unknown): string {
  return typeof value === "string" ? quoteField(value) : String(value);
}

/** Null: it is not a URI. */
function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

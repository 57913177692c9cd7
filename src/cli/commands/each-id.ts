import type { ServerFlags } from "../flags/server-options.ts";
import { printJson } from "../terminal/print.ts";
import { reportError } from "../terminal/report-error.ts";

/** Does the same with each id, even if one fails. Each failure is reported, and the first one sets the exit code. */
export async function forEachId<Answer>(
  ids: readonly string[],
  { json = false }: ServerFlags,
  { act, say }: { readonly act: (id: string) => Promise<Answer>; readonly say: (answer: Answer) => void },
): Promise<void> {
  for (const id of ids) {
    try {
      const answer = await act(id);
      if (json) printJson(answer);
      else say(answer);
    } catch (error) {
      const code = reportError(error, { json, ...(ids.length > 1 ? { about: id } : {}) });
      process.exitCode ??= code;
    }
  }
}

import type { SubmitInput } from "../../../../src/client/index.ts";

/** A `curl` command that submits the same task. It contains no key: the user adds their own. */
export function curlOf(
  input: SubmitInput,
  { url, hasKey }: { readonly url: string; readonly hasKey: boolean },
): string {
  const body = JSON.stringify(input).replaceAll("'", String.raw`'\''`);
  const key = hasKey ? ` -H "authorization: Bearer $ROTA_KEY"` : "";
  return `curl -s '${url}/v1/tasks'${key} -H 'content-type: application/json' -d '${body}'`;
}

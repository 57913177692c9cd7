import { Command } from "commander";
import type { Me } from "../../model/me.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { print, printJson } from "../terminal/print.ts";
import { sheetLines } from "../views/sheet.ts";

/** `rota me`: the tenant and role of this key, and the server that responds. */
export function meCommand(): Command {
  const command = new Command("me").description(
    "Show the role and tenant of the API key, and the responding node.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const client = openClient(flags);
    const me = await client.me();
    if (flags.json) return printJson(me);
    for (const line of meLines(me, client.url)) print(line);
  });
}

function meLines(me: Me, url: string): string[] {
  const key =
    me.keyId === null ? "none: the server has no keys, so it needs none" : `${me.keyName} (${me.keyId})`;
  const agent: [string, string][] = me.agentId === undefined ? [] : [["agent", oneLine(me.agentId)]];
  return sheetLines([
    ["key", oneLine(key)],
    ["role", me.role],
    ...agent,
    ["tenant", oneLine(`${me.tenantName} (${me.tenantId})`)],
    ["server", `${url}, Rota ${me.version}`],
    ["node", oneLine(me.node)],
  ]);
}

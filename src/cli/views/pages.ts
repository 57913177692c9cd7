import type { Command } from "commander";
import { numberFlag } from "../flags/flag-values.ts";
import type { ServerFlags } from "../flags/server-options.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";

export interface PageFlags extends ServerFlags {
  readonly limit?: string;
  readonly cursor?: string;
  readonly all?: boolean;
}

/** About one screen. `--limit` and `--all` show more. */
const SHOWN_BY_DEFAULT = 20;
/** With `--all`: the largest page of most lists. */
const PAGE_MAX = 1_000;

export function withPageOptions(command: Command): Command {
  return command
    .option("--limit <number>", `how many at most (default: ${SHOWN_BY_DEFAULT})`)
    .option("--cursor <cursor>", "the cursor that the previous page ended with")
    .option("--all", "all of them, page after page");
}

/** Prints one page of a list, or with `--all` all pages. */
export async function printPages<Page extends { readonly count: number }>(
  flags: PageFlags,
  list: {
    readonly pageMax?: number;
    readonly read: (position: { readonly limit: number; readonly cursor?: string }) => Promise<Page>;
    /** Where the next page begins; null on the last one. */
    readonly cursor: (page: Page) => string | null;
    readonly lines: (page: Page) => string[];
    readonly noun: string;
    /** Printed if the list is empty. */
    readonly none?: string;
  },
): Promise<void> {
  // The server refuses a wrong number, with its own message.
  const limit = (
    flags.limit === undefined
      ? flags.all
        ? (list.pageMax ?? PAGE_MAX)
        : SHOWN_BY_DEFAULT
      : numberFlag(flags.limit)
  ) as number;
  let isFirst = true;
  for (let cursor = flags.cursor; ; ) {
    const page = await list.read({ limit, ...(cursor === undefined ? {} : { cursor }) });
    const next = list.cursor(page);
    if (flags.json) printJson(page);
    // Only the first page prints the column titles.
    else if (page.count > 0) for (const line of list.lines(page).slice(isFirst ? 0 : 1)) print(line);
    else if (next !== null) {
      // The server read many rows and none matched yet. A later page may have matches.
      cursor = next;
      continue;
    } else if (isFirst) printNotice(list.none ?? `There are no such ${list.noun}.`);
    isFirst = false;
    if (next === null) return;
    cursor = next;
    if (flags.all) continue;
    if (!flags.json)
      printNotice(`There are more ${list.noun}: add --all, or --cursor ${cursor} for the next page.`);
    return;
  }
}

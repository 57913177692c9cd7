/**
 * Makes llms.txt, a list of the pages for models, and llms-full.txt, the guides and the reference in one file. Both follow the
 * lists of docs/README.md. `npm run llms` writes them; a test compares them with the pages.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

const ROOT = join(import.meta.dirname, "..");

interface Page {
  readonly title: string;
  /** From the root of the repository. */
  readonly path: string;
  readonly about: string;
}

const INTRODUCTION =
  "Rota is a scheduler for AI agents. It queues, schedules, limits, retries and explains the tasks of \
agents that are functions, HTTP services, models, browsers or programs, on SQLite or PostgreSQL.";

/** The content of llms.txt: see llmstxt.org. */
export function llmsTxt(): string {
  const lists = [
    ["Guides", pagesOf("Guides")],
    ["Reference", pagesOf("Reference")],
    ["Optional", pagesOf("For contributors")],
  ] as const;
  const sections = lists.map(
    ([title, pages]) =>
      `## ${title}\n\n${pages.map(({ title: name, path, about }) => `- [${name}](${path}): ${about}\n`).join("")}`,
  );
  return [
    `# Rota\n\n> ${INTRODUCTION}\n`,
    `The same in one file: [llms-full.txt](llms-full.txt)\n`,
    ...sections,
  ].join("\n");
}

/** The content of llms-full.txt. */
export function llmsFullTxt(): string {
  const pages = [...pagesOf("Guides"), ...pagesOf("Reference")];
  return `# Rota\n\n> ${INTRODUCTION}\n${pages.map(({ path }) => wholePage(path)).join("")}`;
}

/** The pages that a section of docs/README.md lists. */
function pagesOf(section: string): Page[] {
  const text = readFileSync(join(ROOT, "docs", "README.md"), "utf8");
  const list = text.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "";
  const rows = [...list.matchAll(/^\| \[(.+?)\]\((.+?)\) +\| (.*?) +\|$/gm)];
  if (rows.length === 0) throw new Error(`docs/README.md lists no pages under ${section}`);
  return rows.map(([, title = "", target = "", about = ""]) => ({
    title,
    path: posix.join("docs", target),
    about,
  }));
}

/** A page with its path, links from the root, and tables without padding. */
function wholePage(path: string): string {
  const text = readFileSync(join(ROOT, path), "utf8")
    .replaceAll(/^<!-- .* -->\n/gm, "")
    .replaceAll(/\]\((?!https?:|#)([^)\s]+)\)/g, (_, target) => `](${posix.join(dirname(path), target)})`)
    .replaceAll(/^\|.*\|$/gm, (row) => row.replaceAll(/ {2,}/g, " ").replaceAll(/-{4,}/g, "---"));
  return `\n---\nPage: ${path}\n\n${text}`;
}

if (import.meta.main) {
  writeFileSync(join(ROOT, "llms.txt"), llmsTxt());
  writeFileSync(join(ROOT, "llms-full.txt"), llmsFullTxt());
}

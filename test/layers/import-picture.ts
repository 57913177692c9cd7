import type { ScannedSource } from "./scan-source.ts";

/** The imports between the folders of `src/` as a Mermaid flowchart. Arrows that follow from others are left out. */
export function importPicture(sources: readonly ScannedSource[]): string {
  const arrows = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    const from = folderOf(path);
    for (const { file } of imports) {
      if (file === null) continue;
      const to = folderOf(file);
      if (to !== from) arrows.set(from, (arrows.get(from) ?? new Set()).add(to));
    }
  }
  const lines = [...arrows].flatMap(([from, targets]) =>
    [...targets].filter((to) => !isImplied(arrows, from, to)).map((to) => `  ${node(from)} --> ${node(to)}`),
  );
  return ["```mermaid", "flowchart TD", ...lines.sort(), "```", ""].join("\n");
}

/** A storage driver is a folder of its own; so is a file that lies directly in `src/`. */
function folderOf(path: string): string {
  const [, first = "", second = ""] = path.split("/");
  const isDriver = first === "storage" && !second.includes(".");
  return isDriver ? `storage/${second}` : first;
}

/** Mermaid allows letters and underscores in the name of a node, anything in its label. */
function node(folder: string): string {
  const id = folder.replaceAll(/\W/g, "_");
  return id === folder ? id : `${id}["${folder}"]`;
}

/** Whether there is another way from one to the other. */
function isImplied(arrows: ReadonlyMap<string, ReadonlySet<string>>, from: string, to: string): boolean {
  const seen = new Set<string>([from]);
  const ahead = [...(arrows.get(from) ?? [])].filter((next) => next !== to);
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (next === to) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    ahead.push(...(arrows.get(next) ?? []));
  }
  return false;
}

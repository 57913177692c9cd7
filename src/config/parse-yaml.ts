import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from "yaml";
import type { ParsedText, TextFault } from "./parsed-text.ts";

/** Beyond this many faults the rest are most likely consequences. */
const FAULTS_MAX = 20;
/** How often aliases may be used, each counted with the aliases inside it. More is an attack, or as slow as one. */
const ALIASES_MAX = 1_000;

/**
 * Parses a YAML 1.2 text: the core schema only, without custom tags, and every key once. No fault repeats the text, since that
 * may be a secret.
 */
export function parseYaml(text: string): ParsedText {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: "1.2",
    schema: "core",
    // `!!binary`, `!!set` and their like make values that JSON does not have.
    resolveKnownTags: false,
    stringKeys: true,
    // Checked below: the library compares each key with all before it, which took minutes for a large file.
    uniqueKeys: false,
    // Pretty errors show the line.
    prettyErrors: false,
    lineCounter: lines,
  });
  const faultAt = (offset: number, message: string): TextFault => {
    const { line, col } = lines.linePos(offset);
    return { message, line, column: col };
  };
  const problems = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
  const faults = problems
    .slice(0, FAULTS_MAX)
    // After a colon the library repeats the text that it found.
    .map(({ code, message, pos }) => faultAt(pos[0], SENTENCES[code] ?? message.replace(/: .*$/s, "")));
  if (faults.length === 0) faults.push(...nodeFaults(document, faultAt));
  if (faults.length > 0) return { ok: false, faults };
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: ALIASES_MAX }) };
  } catch (error) {
    return { ok: false, faults: [{ message: (error as Error).message }] };
  }
}

/** Replacements for messages of the library that would not help the author of a file. */
const SENTENCES: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "a second document begins here: write one only",
  NON_STRING_KEY: "a key must be a text",
  RESOURCE_EXHAUSTION: "this is nested too deep",
  TAG_RESOLVE_FAILED: "this tag is not known: leave it out",
};

/** Finds keys that occur twice in one map, and aliases of unknown anchors or of a node that contains them. */
function nodeFaults(
  document: Document.Parsed,
  faultAt: (offset: number, message: string) => TextFault,
): TextFault[] {
  const faults: TextFault[] = [];
  const anchors = new Map<string, unknown>();
  const add = (node: Node, message: string): void => {
    if (faults.length < FAULTS_MAX) faults.push(faultAt(node.range?.[0] ?? 0, message));
  };
  visit(document, (_key, node, path) => {
    if (isAlias(node)) {
      const named = anchors.get(node.source);
      if (named === undefined) add(node, "this alias names an anchor that is not above it");
      else if ((path as readonly unknown[]).includes(named))
        add(node, "this alias is inside the value that it names");
    } else if (isCollection(node) || isScalar(node)) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
      if (isMap<Scalar>(node)) {
        for (const key of repeatedKeys(node)) add(key, "this key is here twice: keep one of the two");
      }
    }
  });
  return faults;
}

function repeatedKeys({ items }: YAMLMap<Scalar>): Scalar[] {
  const seen = new Set<unknown>();
  return items
    .map(({ key }) => key)
    .filter(({ value }) => {
      const isRepeated = seen.has(value);
      seen.add(value);
      return isRepeated;
    });
}

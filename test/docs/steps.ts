import type { CodeBlock } from "./markdown.ts";

/** What a reader of a guide does, one block of it. */
export type Step =
  /** Writes a file: the sentence before the block ends with its name. */
  | { readonly kind: "save"; readonly file: string; readonly text: string; readonly line: number }
  /** Starts a program that keeps running, in a terminal of its own, and waits until it prints `shown`. */
  | {
      readonly kind: "start";
      readonly terminal: string;
      readonly text: string;
      readonly shown: string;
      readonly line: number;
    }
  /** Runs commands that end. Their output is what the next block shows, if that is one of output. */
  | { readonly kind: "run"; readonly text: string; readonly shown: CodeBlock | null; readonly line: number };

/** Languages of files that the reader of a guide writes. */
const FILES = ["json", "yaml", "python", "ts", "js"];
/** Commands for contributors, which the README lists. Other tests call what they call. */
const CONTRIBUTING = /^npm (?:test|run (?!-s rota))/;

/** The name under which a block is to be saved; null: it is not to be. */
export function savedAs({ language, before }: CodeBlock): string | null {
  if (!FILES.includes(language)) return null;
  return /[Ss]ave (?:this|it) as `([^`]+)`:$/.exec(before)?.[1] ?? null;
}

/**
 * The steps of a guide, in order. A block without a language is only shown. Any other that no step accounts for is refused, so
 * that a guide has nothing that its test leaves out; programs that are not to be saved are run by test/docs.test.ts.
 */
export function stepsOf(blocks: readonly CodeBlock[]): Step[] {
  const steps: Step[] = [];
  for (const [index, block] of blocks.entries()) {
    const { language, text, line } = block;
    const file = savedAs(block);
    if (file !== null) steps.push({ kind: "save", file, text, line });
    else if (language === "sh" && !isForContributors(text)) steps.push(commandStep(block, blocks[index + 1]));
    else if (!isAccountedFor(block, blocks[index - 1]))
      throw new Error(`line ${line}: no step uses this block of ${language}`);
  }
  return steps;
}

function commandStep({ text, line }: CodeBlock, next: CodeBlock | undefined): Step {
  const terminal = /^# (Terminal \d)/.exec(text)?.[1];
  const shown = next !== undefined && isOutput(next) ? next : null;
  if (terminal === undefined) return { kind: "run", text, shown, line };
  if (shown === null) throw new Error(`line ${line}: what ${terminal} prints once it is ready is not shown`);
  return { kind: "start", terminal, text, shown: shown.text, line };
}

function isAccountedFor(block: CodeBlock, previous: CodeBlock | undefined): boolean {
  const { language, text } = block;
  if (language === "" || language === "ts") return true;
  if (language === "sh") return isForContributors(text);
  return isOutput(block) && previous?.language === "sh";
}

function isOutput(block: CodeBlock): boolean {
  return (block.language === "text" || block.language === "json") && savedAs(block) === null;
}

function isForContributors(text: string): boolean {
  return text
    .trim()
    .split("\n")
    .every((command) => CONTRIBUTING.test(command));
}

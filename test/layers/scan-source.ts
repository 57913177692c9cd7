import { posix } from "node:path";
import { type ImportExpression, parseSync, type TSImportType, Visitor } from "oxc-parser";

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One import or re-export found in a source file. */
export interface FoundImport {
  readonly specifier: string;
  /** The path of a file of ours; null: it names a package. */
  readonly file: string | null;
  /** `type` leaves no trace at run time; `dynamic` loads when it is reached; `static` loads with the file. */
  readonly kind: "static" | "type" | "dynamic";
  readonly line: number;
}

export interface ScannedSource {
  readonly path: string;
  readonly imports: readonly FoundImport[];
  /** Lines with an `import()` of something else than a string, which a reader cannot check. */
  readonly opaqueImports: readonly number[];
  /** The source with spaces in place of comments, strings, the text of templates and regular expressions. */
  readonly code: string;
}

/**
 * Finds what a TypeScript file imports. TypeScript 7 has no compiler API, so this uses the parser that knip depends on. The ending
 * of the path decides whether the text may contain JSX.
 */
export function scanSource({ path, text }: SourceFile): ScannedSource {
  const { program, comments, errors } = parseSync(path, text);
  if (errors[0] !== undefined) throw new SyntaxError(`${path}: ${errors[0].message}`);
  const imports: FoundImport[] = [];
  const opaqueImports: number[] = [];
  const code = text.split("");
  const blank = ({ start, end }: { start: number; end: number }) => {
    for (let at = start; at < end; at += 1) if (code[at] !== "\n") code[at] = " ";
  };
  const lineAt = (index: number) => text.slice(0, index).split("\n").length;
  const add = (start: number, specifier: string, kind: FoundImport["kind"]) => {
    const file = specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : null;
    imports.push({ specifier, file, kind, line: lineAt(start) });
  };
  const addDeclared = ({ start, source, importKind, exportKind }: Declaration) => {
    if (source !== null) add(start, source.value, (importKind ?? exportKind) === "type" ? "type" : "static");
  };
  const addTypeOf = ({ start, source }: TSImportType) => add(start, source.value, "type");
  const addCalled = ({ start, source }: ImportExpression) => {
    if (source.type === "Literal" && typeof source.value === "string") add(start, source.value, "dynamic");
    else opaqueImports.push(lineAt(start));
  };
  comments.forEach(blank);
  new Visitor({
    ImportDeclaration: addDeclared,
    ExportAllDeclaration: addDeclared,
    ExportNamedDeclaration: addDeclared,
    TSImportType: addTypeOf,
    ImportExpression: addCalled,
    Literal: blank,
    TemplateElement: blank,
  }).visit(program);
  return { path, imports, opaqueImports, code: code.join("") };
}

/** An `import` or an `export`. Without a `source`, it exports what the file itself declares. */
interface Declaration {
  readonly start: number;
  readonly source: { readonly value: string } | null;
  readonly importKind?: string | null;
  readonly exportKind?: string | null;
}

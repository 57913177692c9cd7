import { expect, test } from "vitest";
import { scanSource } from "./scan-source.ts";

function found(text: string): string[] {
  return scanSource({ path: "a.ts", text }).imports.map(
    ({ specifier, kind, line }) => `${line} ${kind} ${specifier}`,
  );
}

test("every form of import and re-export is found, with its line", () => {
  const source = [
    'import a from "./a.ts";',
    "import { b, type B } from './b.ts';",
    "import c, {",
    "  d,",
    '} from "./c.ts";',
    'import * as e from "./e.ts";',
    'import type { F } from "./f.ts";',
    'import type G from "./g.ts";',
    'import "./h.ts";',
    'import i from "./i.json" with { type: "json" };',
    'export * from "./j.ts";',
    'export * as k from "./k.ts";',
    'export { l as m } from "./l.ts";',
    'export type { N } from "./n.ts";',
    'export type * from "./o.ts";',
    'const p = await import("./p.ts");',
    'type Q = import("./q.ts").Q;',
  ].join("\n");
  expect(found(source)).toEqual([
    "1 static ./a.ts",
    "2 static ./b.ts",
    "3 static ./c.ts",
    "6 static ./e.ts",
    "7 type ./f.ts",
    "8 type ./g.ts",
    "9 static ./h.ts",
    "10 static ./i.json",
    "11 static ./j.ts",
    "12 static ./k.ts",
    "13 static ./l.ts",
    "14 type ./n.ts",
    "15 type ./o.ts",
    "16 dynamic ./p.ts",
    "17 type ./q.ts",
  ]);
});

test("a default import that is named type is a static import", () => {
  expect(found('import type from "./a.ts";')).toEqual(["1 static ./a.ts"]);
});

test("comments, strings, templates and regular expressions import nothing", () => {
  const source = [
    '// import a from "./a.ts";',
    '/* import "./b.ts"; */',
    "const c = 'import \"./c.ts\"';",
    'const d = `import "./d.ts"`;',
    'const e = /import "e"/;',
    "const f = \"it's \\\" import './f.ts'\";",
    'export const from = "./g.ts";',
    'const h = { import: "./h.ts" };',
    'loader.import("./i.ts");',
  ].join("\n");
  expect(found(source)).toEqual([]);
});

test("an import is found behind text that could hide it", () => {
  expect(found('const a = /["\'`/*]/; import("./a.ts");')).toEqual(["1 dynamic ./a.ts"]);
  expect(found('const a = 4 / 2; const b = "/"; import("./b.ts");')).toEqual(["1 dynamic ./b.ts"]);
  expect(found('const a = [/[/"]/g]; import("./c.ts");')).toEqual(["1 dynamic ./c.ts"]);
  expect(found('const a = `${{ b: `${import("./d.ts")}` }.b} "`; import("./e.ts");')).toEqual([
    "1 dynamic ./d.ts",
    "1 dynamic ./e.ts",
  ]);
});

test("an import of something else than a string is reported as such", () => {
  const source = ['import("./a.ts");', "import(path);", "import(`./${name}.ts`);", 'import("./b" + name);'];
  expect(scanSource({ path: "a.ts", text: source.join("\n") }).opaqueImports).toEqual([2, 3, 4]);
  expect(found(source.join("\n"))).toEqual(["1 dynamic ./a.ts"]);
});

test("the code that remains keeps its lines and loses its text", () => {
  const text = 'a("process.env"); // process.env\nb(`x\n${c}`, /fetch/);';
  expect(scanSource({ path: "a.ts", text }).code.replaceAll(/ +/g, " ")).toBe("a( ); \nb( \n c , );");
});

test("a file that cannot be parsed is an error, not a file without imports", () => {
  expect(() => found("import {")).toThrow("a.ts: ");
});

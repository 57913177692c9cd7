import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readConfigFile } from "./config-file.ts";
import { loadConfig } from "./load.ts";

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

function read(name: string, text: string) {
  return readConfigFile({ file: name, folder: folderWith({ [name]: text }) });
}

const YAML = `
# What the research team needs.
server: { port: 8000 }
storage: sqlite:data/rota.db
scheduler:
  maxInflight: 5
  strategy: priority-fifo
lanes:
  main: 10
  crawl: { concurrency: 5, total: 20 }
agents:
  research:
    executor: &remote { type: http, url: "http://127.0.0.1:9200/" }
    maxInflight: 2
  writer:
    executor: *remote
  "42": {}
`;

const AS_JSON = {
  server: { port: 8_000 },
  storage: "sqlite:data/rota.db",
  scheduler: { maxInflight: 5, strategy: "priority-fifo" },
  lanes: { main: 10, crawl: { concurrency: 5, total: 20 } },
  agents: {
    research: { executor: { type: "http", url: "http://127.0.0.1:9200/" }, maxInflight: 2 },
    writer: { executor: { type: "http", url: "http://127.0.0.1:9200/" } },
    "42": {},
  },
};

test.each(["rota.config.yaml", "rota.config.yml", "rota.config.json"])(
  "%s is found in the folder, and says the same in either language",
  (name) => {
    const text = name.endsWith("json") ? JSON.stringify(AS_JSON) : YAML;
    const folder = folderWith({ [name]: text });
    expect(readConfigFile({ folder })).toEqual({ name, found: true, values: AS_JSON, faults: [] });
    expect(loadConfig({ folder, environment: {} }).config.lanes["crawl"]).toEqual({
      concurrency: 5,
      total: 20,
    });
  },
);

test("without a file nothing is said", () => {
  expect(readConfigFile({ folder: folderWith({}) })).toMatchObject({ found: false, values: {}, faults: [] });
});

test("of several files none is chosen, and all are named", () => {
  const folder = folderWith({ "rota.config.json": "{}", "rota.config.yml": "{}" });
  const sentence =
    "rota.config.json and rota.config.yml are both there: keep one of them, or name it with --config";
  expect(readConfigFile({ folder }).faults).toEqual([sentence]);
  expect(() => loadConfig({ folder, environment: {} })).toThrow(sentence);
  expect(readConfigFile({ folder, file: "rota.config.yml" }).faults).toEqual([]);
});

test.each([
  ["mine.json", "{}", {}],
  ["mine.YAML", "a: 1", { a: 1 }],
  ["mine.yaml", "# nothing yet", {}],
  ["mine.yaml", "\ufeffa: 1", { a: 1 }],
  ["mine.yaml", 'a: yes\nb: "no"\nc: 0o17\nd: 1_0\ne: ~', { a: "yes", b: "no", c: 15, d: "1_0", e: null }],
  ["mine.yaml", '{"a": [1, 2.5, true, null]}', { a: [1, 2.5, true, null] }],
  ["mine.conf", '{"a": 1}', { a: 1 }],
  ["mine", '{"a": 1}', { a: 1 }],
])("%s with %j is read", (name, text, values) => {
  expect(read(name, text)).toMatchObject({ name, values, faults: [] });
});

test.each([
  [
    "m.yaml",
    "a: 1\nb: 2\na: 3\n",
    "m.yaml is not YAML: this key is here twice: keep one of the two (m.yaml:3:1)",
  ],
  ["m.yaml", "a:\n\tb: 1\n", "m.yaml is not YAML: Tabs are not allowed as indentation (m.yaml:2:1)"],
  ["m.yaml", "a: !mine secret\n", "m.yaml is not YAML: this tag is not known: leave it out (m.yaml:1:4)"],
  ["m.yaml", "a: !!binary aGk=\n", "m.yaml is not YAML: this tag is not known: leave it out (m.yaml:1:4)"],
  [
    "m.yaml",
    "a: 1\n---\nb: 2\n",
    "m.yaml is not YAML: a second document begins here: write one only (m.yaml:2:1)",
  ],
  ["m.yaml", "a: *b\n", "m.yaml is not YAML: this alias names an anchor that is not above it (m.yaml:1:4)"],
  [
    "m.yaml",
    "a: &a\n  b: *a\n",
    "m.yaml is not YAML: this alias is inside the value that it names (m.yaml:2:6)",
  ],
  ["m.yaml", "? [1, 2]\n: 3\n", "m.yaml is not YAML: a key must be a text (m.yaml:1:3)"],
  ["m.yaml", "a: 'secret\n", "m.yaml is not YAML: Missing closing 'quote (m.yaml:2:1)"],
  ["m.yaml", "- a\n", 'm.yaml must hold an object, like { "server": { "port": 7682 } }'],
  ["m.json", "null", 'm.json must hold an object, like { "server": { "port": 7682 } }'],
  ["m.json", '{\n  "a": secret\n}', "m.json is not JSON: Unexpected token 's' (m.json:2:8)"],
  [
    "m.json",
    '{\n  "a": 1\n  "b": 2\n}',
    "m.json is not JSON: Expected ',' or '}' after property value (m.json:3:3)",
  ],
  ["m.json", '{"a": 1}}', "m.json is not JSON: Unexpected non-whitespace character after JSON (m.json:1:9)"],
  ["m.json", '{"a": "b', "m.json is not JSON: Unterminated string (m.json:1:9)"],
  ["m.json", "[1, tru", "m.json is not JSON: Unexpected end of JSON input (m.json:1:8)"],
  [
    "m.conf",
    "a: 1",
    "m.conf is not JSON: Unexpected token 'a' (m.conf:1:1); a file of YAML has a name that ends in .yaml or .yml",
  ],
  ["m.json", " \n", "m.json is empty: write {} if nothing is to be configured"],
  ["m.yaml", "", "m.yaml is empty: write {} if nothing is to be configured"],
])("%s with %j is refused, with the place and without what stands there", (name, text, sentence) => {
  expect(read(name, text)).toMatchObject({ values: {}, faults: [sentence] });
});

test("an unexpected token is found wherever it stands", () => {
  const text = JSON.stringify({ a: ["x", { b: [1, 2, { c: "d" }] }], e: "f" }, null, 2);
  for (let offset = 0; offset <= text.length; offset++) {
    const [fault] = read("m.json", `${text.slice(0, offset)}§${text.slice(offset)}`).faults;
    if (fault === undefined || !fault.includes("Unexpected token '§'")) continue;
    const lines = text.slice(0, offset).split("\n");
    expect(fault).toContain(`(m.json:${lines.length}:${(lines.at(-1) as string).length + 1})`);
  }
});

test("all faults of a YAML file are reported at once, together with those of variables", () => {
  const folder = folderWith({ "rota.config.yaml": "a: 1\na: 2\nb: 1\nb: 2\n" });
  expect(() => loadConfig({ folder, environment: { ROTA_SERVER_PORT: "high" } })).toThrow(
    [
      "the configuration has 3 faults:",
      "- rota.config.yaml is not YAML: this key is here twice: keep one of the two (rota.config.yaml:2:1)",
      "- rota.config.yaml is not YAML: this key is here twice: keep one of the two (rota.config.yaml:4:1)",
      '- `server.port` must be an integer from 0 to 65535, not "high" (ROTA_SERVER_PORT)',
    ].join("\n"),
  );
});

test("aliases that multiply are refused before they fill the memory", () => {
  const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
  for (let n = 1; n < 10; n++) lines.push(`a${n}: &a${n} [${`*a${n - 1},`.repeat(9)}]`);
  expect(read("m.yaml", lines.join("\n")).faults).toEqual([
    "m.yaml is not YAML: Excessive alias count indicates a resource exhaustion attack (m.yaml)",
  ]);
});

test.each([
  ["m.yaml", "[".repeat(100_000)],
  ["m.yaml", "- ".repeat(100_000)],
  ["m.json", "[".repeat(500_000)],
])("%s that is nested too deep is refused", (name, text) => {
  expect(read(name, text).faults.length).toBeGreaterThan(0);
});

test("a large file is read in a moment", () => {
  const large = Array.from({ length: 50_000 }, (_, index) => `key${index}: 1`);
  expect(read("m.yaml", large.join("\n")).faults).toEqual([]);
  const half = large.slice(0, 25_000);
  expect(read("m.yaml", [...half, ...half].join("\n")).faults).toHaveLength(20);
  const aliases = ["a: &a 1", ...half.map((_, index) => `key${index}: *a`)];
  expect(read("m.yaml", aliases.join("\n")).faults).toHaveLength(1);
});

test("keys may be the same in different maps, and __proto__ is one like others", () => {
  expect(read("m.yaml", "a: { x: 1 }\nb: { x: 1 }\n").faults).toEqual([]);
  expect(read("m.yaml", '__proto__: 1\n"__proto__": 2\n').faults).toHaveLength(1);
  expect(read("m.yaml", "1: a\n'1': b\n").faults).toHaveLength(1);
});

test("a file of a megabyte and more is refused", () => {
  expect(read("m.json", JSON.stringify({ a: "x".repeat(1_048_576) })).faults).toEqual([
    "m.json is larger than 1048576 bytes: it cannot be a configuration",
  ]);
});

test("a folder is no file", () => {
  const folder = folderWith({});
  mkdirSync(join(folder, "rota.config.json"));
  expect(readConfigFile({ folder }).faults).toEqual([
    "cannot read the configuration rota.config.json: EISDIR: illegal operation on a directory, read",
  ]);
});

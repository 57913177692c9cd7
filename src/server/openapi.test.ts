import { createRequire } from "node:module";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { openTestServer } from "../../test/support/http.ts";
import { openTestRota } from "../../test/support/rota.ts";
import { routesOf } from "../../test/support/routes.ts";
import { VERSION } from "../version.ts";
import { createServer } from "./create-server.ts";
import { describeApi } from "./openapi.ts";

interface Media {
  readonly schema: { readonly $ref?: string; readonly type?: string; readonly examples?: unknown[] };
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description: string;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content: Readonly<Record<string, Media>> }>
  >;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly examples?: unknown[] }>> };
}

async function readDocument(path = "/openapi.json"): Promise<Document> {
  const { ask } = await openTestServer({ start: false });
  const { status, body } = await ask(path);
  expect(status).toBe(200);
  return body;
}

function operationsOf({ paths }: Document): [string, Operation][] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

function mediaOf({ requestBody, responses }: Operation): Media[] {
  return [requestBody, ...Object.values(responses)].flatMap((part) => Object.values(part?.content ?? {}));
}

/** The schema that a component was made of. */
function schemaOf(name: string): z.ZodType {
  const schema = (z.globalRegistry as unknown as { _idmap: Map<string, z.ZodType> })._idmap.get(name);
  if (schema === undefined) throw new Error(`there is no schema ${name}`);
  return schema;
}

test("is OpenAPI 3.1 of this version, the same under both addresses", async () => {
  const document = await readDocument();
  expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Rota", version: VERSION } });
  expect(await readDocument("/v1/openapi.json")).toEqual(document);
});

test("has every route of the server, and no other", async () => {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log });
  onTestFinished(() => app.close());
  const served = (await routesOf(app))
    .filter(({ method }) => method !== "HEAD")
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  const described = operationsOf(await readDocument()).map(([route]) => route);
  expect(described.sort()).toEqual(served.sort());
});

test("says of every operation what it is for, what it takes and how it can fail", async () => {
  const document = await readDocument();
  const operations = operationsOf(document);
  const ids = operations.map(([, { operationId }]) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const tags = document.tags.map(({ name }) => name);
  for (const [route, operation] of operations) {
    const { summary, description, parameters = [], responses } = operation;
    expect([summary, description], route).not.toContain(undefined);
    expect(tags, route).toEqual(expect.arrayContaining([...operation.tags]));
    expect(Object.keys(responses), route).toEqual(expect.arrayContaining(["400", "403", "413", "500"]));
    for (const [status, { description: means }] of Object.entries(responses))
      expect(means, `${route} ${status}`).toMatch(/^(?!Default Response).+/);
    for (const parameter of parameters) expect(parameter.description, route).toMatch(/./);
    const inPath = [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(
      parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name),
      route,
    ).toEqual(inPath);
  }
});

test("says of every operation who may do it, and which need no key", async () => {
  const { components, paths } = (await readDocument()) as Document & {
    components: { securitySchemes: object };
    paths: Record<string, Record<string, Operation & { security: object[] }>>;
  };
  expect(components.securitySchemes).toEqual({ apiKey: { type: "http", scheme: "bearer" } });
  const open = Object.entries(paths).filter(([, { get }]) => get?.security.length === 0);
  expect(open.map(([path]) => path).sort()).toEqual(["/health", "/ready", "/v1/health", "/v1/ready"]);
  expect(paths["/v1/keys"]?.["post"]).toMatchObject({
    security: [{ apiKey: [] }],
    description: expect.stringMatching(/ For keys of the role `tenant-admin` or `admin`\.$/),
  });
});

test("has an example for every body and every response, and each example fits its schema", async () => {
  const document = await readDocument();
  for (const [route, operation] of operationsOf(document)) {
    for (const { schema, examples = {} } of mediaOf(operation)) {
      const name = schema.$ref?.split("/").at(-1);
      const given = Object.values(examples).map(({ value }) => value);
      const own = name === undefined ? schema.examples : document.components.schemas[name]?.examples;
      const all = [...given, ...(own ?? [])];
      expect(all, `${route} ${name}`).not.toEqual([]);
      for (const example of all) {
        if (name === undefined) expect(typeof example, route).toBe(schema.type);
        else expect(() => schemaOf(name).parse(example), `${route} ${name}`).not.toThrow();
      }
    }
  }
});

test("shows for each resource the sentences that its own errors have", async () => {
  for (const [route, operation] of operationsOf(await readDocument())) {
    const [, noun] = /\/(task|session|agent|deliver|schedule|run)\w*\/\{/.exec(route) ?? [];
    if (noun === undefined) continue;
    for (const status of ["404", "409"]) {
      const { examples = {} } = operation.responses[status]?.content?.["application/json"] ?? {};
      for (const { value } of Object.values(examples)) {
        expect((value as { error: string }).error, `${route} ${status}`).toContain(noun);
      }
    }
  }
});

test("refers to nothing that is not there, and has nothing twice", async () => {
  const document = await readDocument();
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)].map(([, target]) => target);
  const names = Object.keys(document.components.schemas);
  expect(references).not.toEqual([]);
  expect(new Set(references)).toEqual(
    new Set(references.filter((target) => names.some((name) => target === `#/components/schemas/${name}`))),
  );
  expect(names.filter((name) => name.endsWith("Input"))).toEqual([]);
  expect(new Set(names.map((name) => JSON.stringify(document.components.schemas[name]))).size).toBe(
    names.length,
  );
});

test("is made once, and sent as it is from then on", async () => {
  const [first, second] = await Promise.all([describeApi(), describeApi()]);
  expect(second).toBe(first);
  const { url } = await openTestServer({ start: false });
  const stringify = vi.spyOn(JSON, "stringify");
  try {
    const response = await fetch(`${url}/openapi.json`);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(Buffer.from(await response.arrayBuffer()).equals(first)).toBe(true);
    expect(stringify.mock.calls.filter(([value]) => Object.hasOwn(Object(value), "openapi"))).toEqual([]);
  } finally {
    stringify.mockRestore();
  }
});

test("is made in another thread: what describes routes is not even loaded here", async () => {
  const { paths } = JSON.parse((await describeApi()).toString()) as Document;
  expect(Object.keys(paths).length).toBeGreaterThan(50);
  const loaded = Object.keys(createRequire(import.meta.url).cache);
  expect(loaded.filter((path) => path.includes("/@fastify/swagger/"))).toEqual([]);
});

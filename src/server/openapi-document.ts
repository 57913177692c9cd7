import swagger, { type SwaggerTransform, type SwaggerTransformObject } from "@fastify/swagger";
import Fastify from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { z } from "zod";
import type { openApiDocument } from "../api/openapi.ts";
import { or } from "../model/field-checks.ts";
import { PERMISSIONS, type Permission } from "../tenants/permissions.ts";
import { VERSION } from "../version.ts";
import { type RouteParts, registerRoutes } from "./routes.ts";

type Document = z.infer<typeof openApiDocument>;

const DESCRIPTION = `The scheduler for AI agents: it decides which agent works on what, and when.

Every route but those of sessions, schedules, writs, notifications, lanes, agents, webhooks, tenants, keys, audit, config, doctor, bulk actions and me is there with and without \`/v1\`. Bodies are JSON of at most 1 MiB; a field or query parameter that a route does not know is refused. In a create, null counts as left out, except for \`payload\`; in a PATCH it takes the value back. Every error has the same shape.

Once there are API keys, every request carries one: \`Authorization: Bearer rota_…\`. A key belongs to one tenant, sees that tenant's work alone, and may do what its role allows.`;

const TAGS = [
  { name: "tasks", description: "Submit, read, cancel and retry tasks." },
  { name: "sessions", description: "Conversations: messages in order, stop words, settings." },
  {
    name: "schedules",
    description:
      "Work that is due again and again, or once: said in words or as cron, with a row for each moment.",
  },
  { name: "notifications", description: "What schedules and their runs do, as it happens." },
  { name: "events", description: "What happens, as it happens." },
  { name: "scheduler", description: "The queue in numbers." },
  {
    name: "lanes",
    description: "Pools of concurrency: how much of each runs at once, and what waits in it.",
  },
  { name: "agents", description: "Who does the work." },
  { name: "webhooks", description: "Deliveries of callbacks." },
  { name: "tenants", description: "Whose work it is: walls that nothing crosses. For admins." },
  { name: "keys", description: "Who may ask, and for what. For admins." },
  { name: "audit", description: "Who did what, and when. For admins." },
  { name: "node", description: "How this process is." },
];

/** How a key is sent. Without keys, on the machine itself, none is asked for. */
const SCHEME = "apiKey";

/** The dependencies of routes. An app that only describes its routes uses none of them. */
const NO_PARTS = { installation: {}, config: () => ({}) } as unknown as RouteParts;

/**
 * The OpenAPI document of the routes, which is the same for every server. Registers them with an app that does not listen, since
 * the plugin that describes them must be registered first. Takes half a second, in one go.
 */
export async function makeDocument(): Promise<Document> {
  const app = Fastify();
  // Schemas are only read here, not compiled.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Rota", version: VERSION, description: DESCRIPTION },
      tags: TAGS,
      components: { securitySchemes: { [SCHEME]: { type: "http", scheme: "bearer" } } },
    },
    transform: describeRoute(),
    transformObject: joinComponents,
  });
  registerRoutes(app, NO_PARTS);
  await app.ready();
  const made = app.swagger() as unknown as Document;
  await app.close();
  return made;
}

/** Adds what OpenAPI needs besides the schemas: descriptions and examples of responses, and unique names. */
function describeRoute(): SwaggerTransform {
  const named = new Set<string>();
  return (route) => {
    const { schema, url } = jsonSchemaTransform(route);
    const { operationId, description, response = {}, ...rest } = schema as RouteSchema;
    const access = (route.route.config as { access: Permission }).access;
    const name = named.has(operationId) ? `${operationId}V1` : operationId;
    named.add(name);
    const given = route.schema.response as Readonly<Record<string, z.ZodType>>;
    const answers = Object.entries(response).map(([status, answer]) => [
      status,
      describeAnswer(answer, given[status] as z.ZodType),
    ]);
    return {
      url,
      schema: {
        ...rest,
        operationId: name,
        description: `${description} ${whoMay(access)}`,
        security: access === "open" ? [] : [{ [SCHEME]: [] }],
        response: Object.fromEntries(answers),
      },
    };
  };
}

function whoMay(access: Permission): string {
  if (access === "open") return "Needs no key.";
  return `For keys of the role ${or(PERMISSIONS[access].map((role) => `\`${role}\``))}.`;
}

interface RouteSchema {
  readonly description: string;
  readonly operationId: string;
  readonly response?: Readonly<Record<string, AnswerSchema>>;
}

interface AnswerSchema {
  readonly description?: string;
  readonly content?: object;
}

/** The plugin uses the description of a response as that of its schema, and drops fields beside a reference. */
function describeAnswer(answer: AnswerSchema, given: z.ZodType): AnswerSchema {
  if (answer.content !== undefined) return answer;
  const { description = "", examples = [] } = given.meta() as { description?: string; examples?: Example[] };
  const named = examples.map((value, index) => [value.code ?? `example-${index + 1}`, { value }]);
  const { description: _description, ...schema } = answer;
  return {
    description,
    content: { "application/json": { schema, examples: Object.fromEntries(named) } },
  };
}

interface Example {
  readonly code?: string;
}

/**
 * Our schemas mean the same in requests and in answers, but are put down twice, once as `…Input`: the document says
 * everything once.
 */
const joinComponents: SwaggerTransformObject = (given) => {
  const text = JSON.stringify(jsonSchemaTransformObject(given));
  const joined = JSON.parse(text.replaceAll(/("#\/components\/schemas\/\w+?)Input"/g, '$1"'), withoutNoise);
  for (const name of Object.keys(joined.components.schemas)) {
    if (name.endsWith("Input")) delete joined.components.schemas[name];
  }
  return joined;
};

/** Bounds that every number has, and patterns that only repeat what the format says. */
function withoutNoise(key: string, value: unknown): unknown {
  if ((key === "minimum" || key === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("format" in value)) return value;
  const { pattern: _pattern, ...rest } = value as { pattern?: string; format: unknown };
  return rest;
}

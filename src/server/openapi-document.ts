import swagger, { type SwaggerTransform, type SwaggerTransformObject } from "@fastify/swagger";
import Fastify from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { z } from "zod";
import type { openApiDocument } from "../api/openapi.ts";
import { joinWithOr } from "../model/input/field-checks.ts";
import { PERMISSIONS, type Permission } from "../tenants/permissions.ts";
import { VERSION } from "../version.ts";
import type { RouteParts } from "./route-parts.ts";
import { registerRoutes } from "./routes.ts";

type Document = z.infer<typeof openApiDocument>;

const DESCRIPTION = `The scheduler for AI agents: it decides which agent works on what, and when.

Routes whose path is listed without \`/v1\` are also served under \`/v1\`. Bodies are JSON of at most 1 MiB; an unknown field or query parameter is refused. In a create, null counts as left out, except for \`payload\`; in a PATCH, null resets the field to its default. Every error has the same shape.

Once there are API keys, every request needs one: \`Authorization: Bearer rota_…\`. A key belongs to one tenant, sees only the work of that tenant, and may do what its role allows.`;

const TAGS = [
  { name: "tasks", description: "Submit, read, cancel and retry tasks." },
  { name: "sessions", description: "Conversations: messages in order, stop words, settings." },
  {
    name: "schedules",
    description: "Recurring or one-time work: rules in words or as cron, and a run for each due time.",
  },
  { name: "notifications", description: "Notifications of schedules, their runs and workers, live." },
  { name: "events", description: "Events of tasks, live and stored." },
  { name: "scheduler", description: "Numbers of the queue, and statistics over time." },
  {
    name: "lanes",
    description: "Pools of slots: their concurrency, and their running and waiting tasks.",
  },
  { name: "agents", description: "The agents that run tasks: executors and limits." },
  { name: "workers", description: "Processes elsewhere that pull tasks, and their attempts." },
  { name: "webhooks", description: "Deliveries of callbacks." },
  { name: "mcp", description: "Model Context Protocol: tools for AI agents." },
  {
    name: "tenants",
    description:
      "Isolated customers or teams, each with limits. For the role `admin`; a `tenant-admin` reads its own.",
  },
  { name: "keys", description: "API keys and their roles. For the roles `admin` and `tenant-admin`." },
  { name: "audit", description: "Changes made with API keys, and refused requests. For the role `admin`." },
  { name: "node", description: "Health, nodes, configuration and checks." },
];

/** The scheme by which a key is sent. A local server without keys asks for none. */
const SCHEME = "apiKey";

/** The dependencies of routes. An app that only describes its routes uses none of them. */
const NO_PARTS = { installation: {}, config: () => ({}) } as unknown as RouteParts;

/**
 * The OpenAPI document of the routes, the same for every server. Registers the routes with an app that does not listen, since the
 * plugin that describes them must be registered first. Blocks the event loop for half a second.
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
  return `For keys of the role ${joinWithOr(PERMISSIONS[access].map((role) => `\`${role}\``))}.`;
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
 * The plugin writes each schema twice, the second time as `…Input`. Ours are the same in requests and responses, so the document
 * keeps one.
 */
const joinComponents: SwaggerTransformObject = (given) => {
  const text = JSON.stringify(jsonSchemaTransformObject(given));
  const joined = JSON.parse(text.replaceAll(/("#\/components\/schemas\/\w+?)Input"/g, '$1"'), withoutNoise);
  for (const name of Object.keys(joined.components.schemas)) {
    if (name.endsWith("Input")) delete joined.components.schemas[name];
  }
  return joined;
};

/** Removes bounds that every number has, and patterns that only repeat the format. */
function withoutNoise(key: string, value: unknown): unknown {
  if ((key === "minimum" || key === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("format" in value)) return value;
  const { pattern: _pattern, ...rest } = value as { pattern?: string; format: unknown };
  return rest;
}

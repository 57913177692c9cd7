import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import type { Permission } from "../../src/tenants/permissions.ts";

export interface KnownRoute {
  readonly method: string;
  /** As `/tasks/:id`. */
  readonly path: string;
  /** What its body must at least be; undefined when it takes none. */
  readonly body: z.ZodType | undefined;
  readonly queryNames: readonly string[];
  /** The permission that it needs. */
  readonly access: Permission | undefined;
}

/** Every route of an app, as the app reports it. Call this before it is ready. */
export async function routesOf(app: FastifyInstance): Promise<KnownRoute[]> {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ method, url, config, schema = {} }) => {
    const body = schema.body as z.ZodType | undefined;
    const query = (schema.querystring ?? {}) as { shape?: object };
    for (const each of [method].flat()) {
      routes.push({
        method: each,
        path: url,
        body: body?.type === "undefined" ? undefined : body,
        queryNames: Object.keys(query.shape ?? {}),
        access: config?.access,
      });
    }
  });
  await app.ready();
  return routes;
}

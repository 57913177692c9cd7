import type { FastifyInstance } from "fastify";

export interface KnownRoute {
  readonly method: string;
  /** As `/tasks/:id`. */
  readonly path: string;
}

/** Every route an app has, as the app itself tells. Ask before it is ready. */
export async function routesOf(app: FastifyInstance): Promise<KnownRoute[]> {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, path: url });
  });
  await app.ready();
  return routes;
}

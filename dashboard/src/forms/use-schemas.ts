import { RotaError } from "../../../src/client/index.ts";
import { useSession } from "../api/session.tsx";
import { type UseQueryResult, useQuery } from "../queries/use-query.ts";
import type { Schemas } from "./form-schema.ts";

/** The inputs of the API, as the server describes them: a form has the fields that this server takes. */
export function useSchemas(): UseQueryResult<Schemas> {
  const { client, key } = useSession();
  return useQuery({
    queryKey: ["openapi"],
    queryFn: async ({ signal }) => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const response = await fetch(`${client.url}/openapi.json`, { signal, headers });
      if (response.ok) return (await response.json()).components.schemas as Schemas;
      const { code = "internal_error", error } = await response.json().catch(() => ({}));
      // A key that is no longer accepted leads to the sign-in, as with every other request.
      throw new RotaError(code, error ?? `the server responded with ${response.status}`);
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  });
}

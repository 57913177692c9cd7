import { useSession } from "../../api/session.tsx";
import { useQuery } from "../../queries/use-query.ts";

/** All tenants. Only admins may read them. */
export function useTenants() {
  const { client, may } = useSession();
  return useQuery({
    queryKey: ["tenants"],
    queryFn: ({ signal }) => client.tenants.list({ signal }),
    enabled: may("administer"),
  });
}

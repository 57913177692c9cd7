import { createContext, useContext } from "react";
import { QueryClient } from "./query-client.ts";

export const QueryContext = createContext(new QueryClient());

export function useQueryClient(): QueryClient {
  return useContext(QueryContext);
}

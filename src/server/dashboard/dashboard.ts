import type { DashboardFiles } from "./dashboard-files.ts";

/** The dashboard of a server. Its files may still be building when the server is ready. */
export interface Dashboard {
  readonly state: DashboardState;
}

export type DashboardState =
  | { readonly kind: "building" }
  | { readonly kind: "ready"; readonly files: DashboardFiles }
  /** `remedy`: what to do about it, one sentence. */
  | { readonly kind: "failed"; readonly remedy: string };

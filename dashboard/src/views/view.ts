import type { ComponentType } from "react";
import type { Feature } from "../../../src/client/index.ts";
import type { Permission } from "../api/permissions.ts";
import type { IconName } from "../parts/icon.tsx";

/** The parts of the navigation, in order. */
export const NAV_GROUPS = ["Work", "Capacity", "Records", "Server"] as const;

/** One part of the dashboard. Each folder below `views/` has a `view.ts` whose default export is one of these. */
export interface View {
  /** Its pages, below `/ui`, such as `/tasks/:id`. The first that matches is shown. */
  readonly routes: readonly {
    readonly path: string;
    readonly page: ComponentType<{ params: Record<string, string> }>;
  }[];
  /** Absent: only other pages lead to it. */
  readonly nav?: {
    readonly group: (typeof NAV_GROUPS)[number];
    /** Small numbers come first. */
    readonly order: number;
    readonly label: string;
    readonly icon: IconName;
    readonly path: string;
    /** The second key after `g`. */
    readonly key?: string;
    /** What its form for a new entry is called, and who may use it. */
    readonly creates?: { readonly label: string; readonly needs: Permission };
  };
  /** The permission to see it. Absent: every user may. */
  readonly needs?: Permission;
  /** The feature that the server must have. Absent: none. */
  readonly feature?: Feature;
}

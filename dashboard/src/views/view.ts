import type { ComponentType } from "react";
import type { Feature } from "../../../src/client/index.ts";
import type { Permission } from "../api/permissions.ts";
import type { IconName } from "../parts/icon.tsx";

/** One part of the dashboard. Each folder below `views/` has a `view.ts` whose default export is one of these. */
export interface View {
  /** Its pages; the first that fits is shown. Below `/ui`: `/tasks/:id`. */
  readonly routes: readonly {
    readonly path: string;
    /** Loaded when it is shown first: everything large goes behind this. */
    readonly load: () => Promise<{ readonly default: ComponentType<{ params: Record<string, string> }> }>;
  }[];
  /** Left out: it is reached from other pages only. */
  readonly nav?: {
    readonly group: "Work" | "Capacity" | "Records";
    /** Small numbers come first. */
    readonly order: number;
    readonly label: string;
    readonly icon: IconName;
    readonly path: string;
    /** The second key after `g`. */
    readonly key?: string;
  };
  /** Who sees it; left out: everybody. */
  readonly needs?: Permission;
  /** What the server must be able to do; left out: any server will do. */
  readonly feature?: Feature;
}

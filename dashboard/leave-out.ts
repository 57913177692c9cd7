import type { Plugin } from "vite";

/**
 * Functions of React DOM for features that the dashboard does not use: `Suspense`, `Activity`, view transitions, hydration of HTML from
 * a server, styles and scripts inside components, form actions and custom elements. They are 8 KB of 160.
 */
const UNUSED = [
  "acquireResource",
  "applyViewTransitionToHostInstancesRecursive",
  "attemptExplicitHydrationTarget",
  "canHydrateInstance",
  "clearHydrationBoundary",
  "commitDeletedPairViewTransitions",
  "estimateBandwidth",
  "getResource",
  "insertStylesheetIntoRoot",
  "measureNestedViewTransitions",
  "measureViewTransitionHostInstancesRecursive",
  "mountActionState",
  "preinitStyle",
  "preload",
  "preloadModule",
  "prepareToHydrateHostInstance",
  "restoreViewTransitionName",
  "runActionStateAction",
  "setPropOnCustomElement",
  "startViewTransition",
  "suspendResource",
  "updateActivityComponent",
  "updateDehydratedSuspenseComponent",
  "updateSuspenseComponent",
  "updateSuspenseListComponent",
];

/** The body that stands in for those of unused functions: a view that needs one of them fails in its first test. */
const LEFT_OUT = '{throw Error("left out of the build by dashboard/leave-out.ts")}';

/**
 * Leaves what the dashboard does not use out of the build. A version of React DOM without one of the functions fails the
 * build, so that this list is looked at again.
 */
export function leaveOut(): Plugin {
  return {
    name: "leave-out",
    enforce: "pre",
    // The developer tools of React want a development build.
    config: () => ({ define: { __REACT_DEVTOOLS_GLOBAL_HOOK__: "undefined" } }),
    apply: "build",
    // All files are named in the page or in one import: there is nothing that vite could fetch ahead of it.
    load: (id) =>
      id.endsWith("vite/preload-helper.js") ? "export const __vitePreload = (load) => load();" : undefined,
    transform(code, id) {
      if (!id.endsWith("react-dom-client.production.js")) return undefined;
      const unused = new Set(UNUSED);
      let text = code;
      for (const node of this.parse(code).body.toReversed()) {
        if (node.type !== "FunctionDeclaration" || !node.id || !node.body) continue;
        if (!unused.delete(node.id.name)) continue;
        text = text.slice(0, node.body.start) + LEFT_OUT + text.slice(node.body.end);
      }
      if (unused.size > 0) this.error(`React DOM has no ${[...unused].join(", ")}`);
      return text;
    },
  };
}

import { basename } from "node:path";
import type { Plugin } from "vite";

/**
 * Functions of React DOM for features that the dashboard does not use: `Suspense`, `Activity`, view transitions, hydration of HTML from
 * a server, styles and scripts inside components, form actions and custom elements. With the exports below they are 15 KB, compressed.
 */
const UNUSED = [
  "acquireResource",
  "applyViewTransitionToHostInstancesRecursive",
  "attemptExplicitHydrationTarget",
  "attemptReplayContinuousQueuedEvent",
  "canHydrateInstance",
  "clearHydrationBoundary",
  "commitAfterMutationEffectsOnFiber",
  "commitDeletedPairViewTransitions",
  "commitEnterViewTransitions",
  "commitExitViewTransitions",
  "commitNestedViewTransitions",
  "defaultOnDefaultTransitionIndicator",
  "dispatchOptimisticSetState",
  "estimateBandwidth",
  "getResource",
  "hideOrUnhideAllChildrenOnFiber",
  "hideOrUnhideNearestPortals",
  "insertStylesheetIntoRoot",
  "measureNestedViewTransitions",
  "measureViewTransitionHostInstancesRecursive",
  "mountActionState",
  "preinitStyle",
  "preload",
  "preloadModule",
  "prepareToHydrateHostInstance",
  "recursivelyTraverseDisappearLayoutEffects",
  "recursivelyTraverseReappearLayoutEffects",
  "recursivelyTraverseReconnectPassiveEffects",
  "restoreViewTransitionName",
  "runActionStateAction",
  "setPropOnCustomElement",
  "startHostTransition",
  "startTransition",
  "startViewTransition",
  "suspendResource",
  "updateActivityComponent",
  "updateDehydratedSuspenseComponent",
  "updateOffscreenComponent",
  "updateSuspenseComponent",
  "updateSuspenseListComponent",
  "useMemoCache",
];

/** What React and React DOM export and the dashboard does not use, by their files. A bundler cannot tell: their exports are assignments. */
const UNUSED_EXPORTS: Readonly<Record<string, readonly string[]>> = {
  "react.production.js": [
    "Children",
    "__COMPILER_RUNTIME",
    "addTransitionType",
    "cache",
    "cloneElement",
    "forwardRef",
    "lazy",
    "memo",
    "startTransition",
    "useActionState",
    "useDeferredValue",
    "useOptimistic",
    "useTransition",
  ],
  "react-dom.production.js": [
    "createPortal",
    "preconnect",
    "prefetchDNS",
    "preinit",
    "preinitModule",
    "preload",
    "preloadModule",
  ],
  "react-dom-client.production.js": ["hydrateRoot"],
};

/** References to fragments have methods that nothing calls. */
const METHODS = /^FragmentInstance\.prototype\./;

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
      const exported = UNUSED_EXPORTS[basename(id)];
      if (exported === undefined || !id.includes("/node_modules/react")) return undefined;
      const unused = new Set(exported.map((name) => `exports.${name}`));
      if (basename(id) === "react-dom-client.production.js") for (const name of UNUSED) unused.add(name);
      let text = code;
      for (const node of this.parse(code).body.toReversed()) {
        if (node.type === "FunctionDeclaration" && node.id && node.body && unused.delete(node.id.name)) {
          text = text.slice(0, node.body.start) + LEFT_OUT + text.slice(node.body.end);
        } else if (node.type === "ExpressionStatement" && node.expression.type === "AssignmentExpression") {
          const { start, end } = node.expression.left;
          const name = code.slice(start, end);
          if (unused.delete(name) || METHODS.test(name))
            text = text.slice(0, node.start) + text.slice(node.end);
        }
      }
      if (unused.size > 0) this.error(`React has no ${[...unused].join(", ")}`);
      return text;
    },
  };
}

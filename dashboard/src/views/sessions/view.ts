import type { View } from "../view.ts";

export default {
  routes: [
    { path: "/sessions", load: () => import("./sessions-page.tsx") },
    // A key may contain any character. Proxies would change some of them in a path.
    { path: "/session", load: () => import("./session-page.tsx") },
  ],
  nav: { group: "Work", order: 30, label: "Sessions", icon: "sessions", path: "/sessions", key: "s" },
} satisfies View;

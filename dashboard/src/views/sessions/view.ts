import type { View } from "../view.ts";

export default {
  routes: [
    { path: "/sessions", load: () => import("./sessions-page.tsx") },
    // Its key may contain anything: in a path, proxies would change some of it.
    { path: "/session", load: () => import("./session-page.tsx") },
  ],
  nav: { group: "Work", order: 30, label: "Sessions", icon: "sessions", path: "/sessions", key: "s" },
} satisfies View;

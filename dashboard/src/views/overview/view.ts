import type { View } from "../view.ts";

export default {
  routes: [{ path: "/", load: () => import("./overview-page.tsx") }],
  nav: { group: "Work", order: 10, label: "Overview", icon: "overview", path: "/", key: "o" },
  needs: "read",
} satisfies View;

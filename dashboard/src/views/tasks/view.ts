import type { View } from "../view.ts";

export default {
  routes: [{ path: "/tasks", load: () => import("./tasks-page.tsx") }],
  nav: { group: "Work", order: 20, label: "Tasks", icon: "tasks", path: "/tasks", key: "t" },
} satisfies View;

import type { View } from "../view.ts";

export default {
  routes: [
    { path: "/schedules", load: () => import("./schedules-page.tsx") },
    { path: "/schedules/:id", load: () => import("./schedule-page.tsx") },
  ],
  nav: { group: "Work", order: 40, label: "Schedules", icon: "schedules", path: "/schedules", key: "c" },
  feature: "schedules",
} satisfies View;

import type { View } from "../view.ts";

const load = () => import("./pages.ts");

export default {
  routes: [
    { path: "/schedules", load: async () => ({ default: (await load()).SchedulesPage }) },
    { path: "/schedules/:id", load: async () => ({ default: (await load()).SchedulePage }) },
  ],
  nav: { group: "Work", order: 40, label: "Schedules", icon: "schedules", path: "/schedules", key: "c" },
  feature: "schedules",
} satisfies View;

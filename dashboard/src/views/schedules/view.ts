import type { View } from "../view.ts";
import { SchedulePage } from "./schedule-page.tsx";
import { SchedulesPage } from "./schedules-page.tsx";

export default {
  routes: [
    { path: "/schedules", page: SchedulesPage },
    { path: "/schedules/:id", page: SchedulePage },
  ],
  nav: {
    group: "Work",
    order: 40,
    label: "Schedules",
    icon: "schedules",
    path: "/schedules",
    key: "c",
    creates: { label: "New schedule", needs: "operate" },
  },
  feature: "schedules",
} satisfies View;

import type { View } from "../view.ts";
import TasksPage from "./tasks-page.tsx";

export default {
  routes: [{ path: "/tasks", page: TasksPage }],
  nav: {
    group: "Work",
    order: 20,
    label: "Tasks",
    icon: "tasks",
    path: "/tasks",
    key: "t",
    creates: { label: "New task", needs: "submit" },
  },
} satisfies View;

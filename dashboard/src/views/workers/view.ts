import type { View } from "../view.ts";
import WorkerPage from "./worker-page.tsx";
import WorkersPage from "./workers-page.tsx";

export default {
  routes: [
    { path: "/workers", page: WorkersPage },
    { path: "/workers/:id", page: WorkerPage },
  ],
  nav: { group: "Capacity", order: 65, label: "Workers", icon: "terminal", path: "/workers", key: "r" },
  needs: "read",
} satisfies View;

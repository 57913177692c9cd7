import type { View } from "../view.ts";
import TaskPage from "./task-page.tsx";

export default {
  routes: [{ path: "/tasks/:id", page: TaskPage }],
} satisfies View;

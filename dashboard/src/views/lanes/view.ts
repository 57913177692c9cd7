import type { View } from "../view.ts";
import LanesPage from "./lanes-page.tsx";

export default {
  routes: [{ path: "/lanes", page: LanesPage }],
  nav: {
    group: "Capacity",
    order: 50,
    label: "Lanes",
    icon: "lanes",
    path: "/lanes",
    key: "l",
    creates: { label: "New lane", needs: "administer" },
  },
  needs: "read",
  feature: "lanes",
} satisfies View;

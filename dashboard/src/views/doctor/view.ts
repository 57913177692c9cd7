import type { View } from "../view.ts";

export default {
  routes: [{ path: "/doctor", load: () => import("./doctor-page.tsx") }],
  nav: { group: "Server", order: 140, label: "Doctor", icon: "check", path: "/doctor" },
  needs: "administer",
  feature: "doctor",
} satisfies View;

import type { View } from "../view.ts";
import DoctorPage from "./doctor-page.tsx";

export default {
  routes: [{ path: "/doctor", page: DoctorPage }],
  nav: { group: "Server", order: 140, label: "Doctor", icon: "check", path: "/doctor" },
  needs: "administer",
  feature: "doctor",
} satisfies View;

/** Both pages in one chunk: they share most of their code, and apart they would be a third larger. */
export { SchedulePage } from "./schedule-page.tsx";
export { SchedulesPage } from "./schedules-page.tsx";

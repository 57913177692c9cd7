/** Both pages in one file to load: they share most of what they are made of, and apart they would take a third more. */
export { SchedulePage } from "./schedule-page.tsx";
export { SchedulesPage } from "./schedules-page.tsx";

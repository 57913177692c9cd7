import type { ScheduleKind } from "../model/schedule.ts";

/** One form of a phrase, as error messages and docs/schedules.md list it. */
export interface AcceptedForm {
  readonly form: string;
  readonly kind: ScheduleKind;
  readonly example: string;
  readonly meaning: string;
}

export const ACCEPTED_FORMS: readonly AcceptedForm[] = [
  {
    form: "in N minutes|hours|days|weeks",
    kind: "once",
    example: "in 30 minutes",
    meaning:
      "That long from now. Days and weeks keep the time of day. N may be a word: `a`, `one` to `twelve`.",
  },
  {
    form: "in N hours N minutes",
    kind: "once",
    example: "in 1 hour 30 minutes",
    meaning: "The same with several units, the larger first.",
  },
  {
    form: "in half an hour",
    kind: "once",
    example: "in half an hour",
    meaning: "In 30 minutes.",
  },
  {
    form: "at HH:MM",
    kind: "once",
    example: "at 17:00",
    meaning: "Today; tomorrow if that is past, or now.",
  },
  {
    form: "at noon | at midnight",
    kind: "once",
    example: "at noon",
    meaning: "The next 12:00, or the next 00:00.",
  },
  {
    form: "today at HH:MM | tonight at HH:MM",
    kind: "once",
    example: "today at 23:59",
    meaning: "Today; refused if that is past. `tonight` takes 17:00 to 23:59.",
  },
  {
    form: "tomorrow [at HH:MM]",
    kind: "once",
    example: "tomorrow at 9am",
    meaning: "Tomorrow.",
  },
  {
    form: "on YYYY-MM-DD [at HH:MM]",
    kind: "once",
    example: "on 2030-06-01 at 12:00",
    meaning: "That day, which may be up to 100 years ahead.",
  },
  {
    form: "on <weekday> [at HH:MM]",
    kind: "once",
    example: "on monday at 9:00",
    meaning: "The first such day and time to come, today included.",
  },
  {
    form: "next <weekday> [at HH:MM]",
    kind: "once",
    example: "next monday",
    meaning: "The first such day after today; if today is that day, in 7 days.",
  },
  {
    form: "at YYYY-MM-DDTHH:MM:SSZ",
    kind: "once",
    example: "at 2030-06-01T12:00:00+02:00",
    meaning: "That moment, as RFC 3339 writes it.",
  },
  {
    form: "every N minutes|hours",
    kind: "recurring",
    example: "every 15 minutes",
    meaning: "By elapsed time, counted from when the schedule was made or last edited.",
  },
  {
    form: "every hour | hourly",
    kind: "recurring",
    example: "hourly",
    meaning: "The same as `every 1 hour`.",
  },
  {
    form: "every day [at HH:MM] | daily [at HH:MM]",
    kind: "recurring",
    example: "every day at 09:00",
    meaning: "At that time, every day.",
  },
  {
    form: "every N days [at HH:MM]",
    kind: "recurring",
    example: "every 2 days at 18:30",
    meaning: "At the next such time of day, and every N days from then on.",
  },
  {
    form: "every other day|week|<weekday> [at HH:MM]",
    kind: "recurring",
    example: "every other day at 09:00",
    meaning: "The same as `every 2 days`, `every 2 weeks` and `every 2 weeks on` that day.",
  },
  {
    form: "every weekday [at HH:MM]",
    kind: "recurring",
    example: "every weekday at 8:30 am",
    meaning: "Monday to Friday.",
  },
  {
    form: "every <weekday> [at HH:MM]",
    kind: "recurring",
    example: "every Mon and Thu at 09:00",
    meaning: "On that day of the week, or on several: `every mon, wed, fri`.",
  },
  {
    form: "every week [on <weekday>] [at HH:MM] | weekly",
    kind: "recurring",
    example: "every week on friday at 17:00",
    meaning: "Once a week, or on several days of it. Monday, if no day is given.",
  },
  {
    form: "every N weeks [on <weekday>] [at HH:MM]",
    kind: "recurring",
    example: "every 2 weeks on Tue at 10:00",
    meaning: "In the first week in which that day comes, and every N weeks from then on.",
  },
  {
    form: "MINUTE HOUR DAY MONTH WEEKDAY | @hourly | @daily | @weekly | @monthly | @yearly",
    kind: "recurring",
    example: "0 9 * * 1-5",
    meaning: "A cron expression. With six fields, the seconds come first.",
  },
];

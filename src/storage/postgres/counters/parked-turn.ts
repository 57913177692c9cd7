/** The turn `u` of task `t`, if its session holds the task back. */
export const PARKED_TURN =
  "left join turn u on u.session = t.session and u.stage = 'parked' and u.place = t.place";

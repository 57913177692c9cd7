-- Strings of tasks and agents may hold NUL and halves of surrogate pairs. PostgreSQL refuses to read any field of a JSON text with
-- such a string, so these are left out first. The text escapes them. An escaped backslash before `u0000` is kept as it is.
create function readable_json(p_text text) returns json language sql immutable parallel safe as $$
  select (case when strpos(p_text, '\u0000') > 0 or strpos(p_text, '\ud') > 0
               then regexp_replace(p_text, '(\\\\)|\\u(?:0000|d[89a-f][0-9a-f]{2})', '\1', 'g')
               else p_text end)::json
$$;

drop index task_by_key;
create index task_by_key on task (tenant, (readable_json(spec) ->> 'key'), seq) where batch is not null;

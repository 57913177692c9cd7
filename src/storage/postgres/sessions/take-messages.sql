-- Gives messages in mode steer to the attempt that runs in their session. Returns those that it has taken, now or before.
create function take_messages(p_now bigint, p_seq bigint, p_token bigint, p_after bigint)
returns table (id text, place bigint, spec text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[];
  v_turns tid[];
begin
  select array_agg(m.task_seq), array_agg(m.turn) into v_seqs, v_turns from messages_for(v_now, p_seq, p_token, p_after) m;
  update turn set taken_by = p_seq where ctid = any (v_turns);
  return query select t.id, t.place, t.spec from task t where t.seq = any (v_seqs) order by t.place;
end $$;

-- The messages that an attempt has taken, and those that it may take. None if it no longer holds its task.
create function messages_for(p_now bigint, p_seq bigint, p_token bigint, p_after bigint)
returns table (task_seq bigint, turn tid) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
    with chosen as (
      select u.task_seq, u.place, u.turn, octet_length(m.spec) as bytes
        from lease l
       cross join lateral (select session, agent from task where seq = l.task_seq offset 0) k
       cross join lateral (
         select place, task_seq, taken_by, steer_until, ctid as turn from turn
          where session = k.session and steer_until is not null and place > p_after and stage = 'parked' offset 0) u
       cross join lateral (select agent, spec from task where seq = u.task_seq offset 0) m
       where l.task_seq = p_seq and l.token = p_token
         and (u.taken_by = p_seq or (u.taken_by is null and u.steer_until > p_now and m.agent = k.agent))
       order by u.place limit :MESSAGES_MAX),
    sized as (
      select task_seq, turn, sum(bytes) over (order by place) as bytes, row_number() over (order by place) as n from chosen)
    select task_seq, turn from sized where n = 1 or bytes <= :BYTES_MAX;
end $$;

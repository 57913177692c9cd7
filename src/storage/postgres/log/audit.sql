-- Deletes expired entries: of a chain the oldest, up to the first that stays, so that the rest has no gap. Two nodes may do
-- so at once.
create function prune_audit(p_now bigint, p_retention_ms bigint, p_limit integer) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_cutoff bigint := v_now - p_retention_ms;
  v_latest bigint := v_now + p_retention_ms;
  v_unchained bigint[];
  v_chains text[];
  v_chain text;
  v_gone integer;
  v_deleted integer;
begin
  select array_agg(seq) filter (where chain is null), array_agg(distinct chain) filter (where chain is not null)
    into v_unchained, v_chains
    from (select * from (
            (select seq, chain from audit_entry where at < v_cutoff order by at, seq limit p_limit)
            union all
            (select seq, chain from audit_entry where at > v_latest order by at desc, seq desc limit p_limit)) both_ends
           limit p_limit) old;
  delete from audit_entry where seq = any (v_unchained);
  get diagnostics v_deleted = row_count;
  foreach v_chain in array coalesce(v_chains, '{}') loop
    with oldest as (
      select seq, number, at from audit_entry where chain = v_chain order by chain, number limit p_limit - v_deleted),
    gone as (
      delete from audit_entry e using oldest o
       where e.seq = o.seq
         and o.number < coalesce((select min(number) from oldest where at between v_cutoff and v_latest), 9e18::bigint)
      returning e.number, e.hash),
    anchored as (
      insert into audit_anchor (chain, number, hash)
      select v_chain, g.number, g.hash from gone g order by g.number desc limit 1
      on conflict (chain) do update set number = excluded.number, hash = excluded.hash
       where excluded.number > audit_anchor.number)
    select count(*) into v_gone from gone;
    v_deleted := v_deleted + v_gone;
  end loop;
  -- Anchors of chains that have no entry left, and no node that would add one.
  delete from audit_anchor a
   where not exists (select 1 from audit_entry e where e.chain = a.chain)
     and not exists (select 1 from node n where n.id = a.chain);
  return v_deleted;
end $$;

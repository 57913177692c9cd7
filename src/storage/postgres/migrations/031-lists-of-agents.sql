-- The lists of a key that sees one agent. They read no rows of other agents.

-- They are on expressions that no other index has: the planner can neither choose another for these lists, nor one of these for
-- anything else.

-- A session without an agent is one of the agent `index`.
create index session_by_agent on session ((tenant || '' || ''), coalesce(agent, 'index'), id);
create index run_by_agent on run ((tenant || '' || ''), agent, (status || ''), (id + 0));
create index run_by_schedule_agent on run ((0 + schedule), agent, (status || ''), (id + 0));
create index notification_by_agent on notification ((tenant || ''), agent, seq);

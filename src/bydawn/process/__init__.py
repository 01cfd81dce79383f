"""Children: agents, checks and hooks, owned completely."""

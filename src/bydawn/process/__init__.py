"""Child processes: agents, checks and hooks, fully controlled."""

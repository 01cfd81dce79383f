"""What strict-agent-loop can do, as values: nine operations on tasks, and its skill."""

"""What strict-agent-loop can do, as values: nine operations on tasks."""

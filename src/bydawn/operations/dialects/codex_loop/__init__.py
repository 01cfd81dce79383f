"""What codex-loop can do, as values: set up a project, run it, look at it, repair it."""

"""strict-agent-loop: one small verified task per round, recorded on disk, stopped by machines."""

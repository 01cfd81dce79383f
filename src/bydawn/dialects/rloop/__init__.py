"""rloop: Claude works through a PRD, one fresh session per task; many projects at once, in the background."""

"""Read, decide, do, record."""

"""The work tree: snapshots of it, and what changed between two of them."""

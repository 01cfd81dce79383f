"""The work tree: snapshots of it, and the changes between them."""

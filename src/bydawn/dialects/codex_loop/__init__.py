"""codex-loop: a goal becomes tasks, tasks become commits on a branch, verification has the last word."""

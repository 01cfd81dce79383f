"""Many loops on this machine: what keeps them running, and what the operating system starts for that."""

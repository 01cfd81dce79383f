"""Many loops on this machine."""

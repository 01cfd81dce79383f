"""A loop's folder on disk: ledger, lock, inbox, rounds, and the registry of all loops."""

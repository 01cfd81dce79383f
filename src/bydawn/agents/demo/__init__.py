"""The built-in agent, which needs no account and no network."""

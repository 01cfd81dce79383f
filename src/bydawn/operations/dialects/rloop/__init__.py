"""What rloop can do: one session per project, and a table of all of them."""

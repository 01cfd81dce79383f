"""What rloop can do and tell, as values: its command line and its page need the same."""

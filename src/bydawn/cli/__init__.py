"""The command line: a table of commands, each of which calls one operation and shows the result."""

"""What any dialect can do: start, continue, find, end and clean up its loops. Values in, values out."""

"""What the commands of a dialect do: each of them on the one engine, with its loops among all others."""

"""What a person can do with loops: one function each."""

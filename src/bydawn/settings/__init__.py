"""Every setting: the table, its layers and files, and what a person has agreed to."""

"""What the machine offers: the kernel, git, and files that are read and written safely."""

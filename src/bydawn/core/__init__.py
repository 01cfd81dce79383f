"""Values and decisions, pure: nothing in here touches a file, a clock or a process."""

"""How fast, how small, how soon: the performance budget of the design, measured on the installed command."""

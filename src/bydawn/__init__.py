"""Runs a coding agent again and again on one goal, unattended, until machines agree that the work is done."""

__version__ = "0.1.0"

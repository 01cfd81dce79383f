#!/usr/bin/env python3
"""Prepare a task: `strict-agent-loop init-state`, with the same options."""

import os
import sys

sys.dont_write_bytecode = True  # or a folder __pycache__ would appear in the repository
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # PYTHONSAFEPATH leaves it out
from _command import hand_over  # noqa: E402

hand_over("init-state")

"""Run prompts from synchronous Python."""

__version__ = "0.1.0"

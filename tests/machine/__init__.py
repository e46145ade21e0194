"""A whole world to run prompts in: its own clock, models, tools and readers.

A ``Script`` says everything that happens in one run: what the model answers and how
fast, what the tools do, who stops the run and when. ``play`` plays it and returns a
``Trace``; ``check`` holds the trace against what every run promises. A ``Talk`` is the
same for the fluent door. Nothing is left to chance: workers are threads of which one
at a time moves, on a clock that nobody waits for, so that a script always plays the
same. In the order of reading:

``dice``
    choices out of bytes, which is how scripts are thrown
``clock``
    workers on a clock of their own
``script``
    what is said of a run before it happens
``world``
    the model, and what a run has touched
``tools``
    the tools, and runs within them
``play``
    one run of a prompt
``promises``
    what is promised of it
``talk``, ``talk_promises``
    the same for requests of an agent
"""

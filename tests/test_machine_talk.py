"""Whatever models, tools, hooks and readers do, requests of an agent keep promises.

Random talks are played in ``machine``: one or two requests of an agent, of a session
or not, the second going on where the first waits, if it does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given

sys.path.insert(0, str(Path(__file__).parent))

from machine.dice import played, thrown
from machine.talk import TALK, Talk, TalkPlay, throw_talk
from machine.talk_promises import check_talk


@played(0.5)
@given(thrown(throw_talk, TALK))
def test_requests_of_an_agent_keep_their_promises(talk: Talk) -> None:
    """Every promise holds in every round of a talk."""
    playing = TalkPlay(talk)
    for n in range(len(talk.rounds)):
        check_talk(playing.play(n))

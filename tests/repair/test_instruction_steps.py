"""What is done by hand is shown a sentence a line."""

import pytest

from repair.instruction_steps import InstructionSteps, steps_of


@pytest.mark.parametrize(
    ("text", "name", "steps"),
    [
        ("explain", "", ("explain.",)),
        ("wait: Wait. Then look.", "wait", ("Wait.", "Then look.")),
        # A server's name may begin a sentence, and addresses have full stops.
        (
            "join_group: on 10.0.0.7 run `A`. db2 follows: see my.cnf",
            "join_group",
            ("on 10.0.0.7 run `A`.", "db2 follows: see my.cnf."),
        ),
        # A statement is left as it is.
        (
            "configure: run `SELECT 'Once. Twice. '`. Done.",
            "configure",
            ("run `SELECT 'Once. Twice. '`.", "Done."),
        ),
        ("on b: stop. It waits", "", ("on b: stop.", "It waits.")),
    ],
)
def test_a_sentence_is_a_step(text: str, name: str, steps: tuple[str, ...]) -> None:
    assert steps_of(text) == InstructionSteps(name, steps)

"""A few random faults on real servers in the nightly suite; `make faults` runs more of them."""

import pytest

from compose.native.installation import Installation
from tests.random_faults.cases import CASES_PER_TOPOLOGY, shape_of
from tests.random_faults.run import evaluated_cases, report_of_case

SEED = 7
CASES = 12
# The first topology of each shape that this seed draws.
STARTS = {shape_of(SEED, number): number for number in reversed(range(0, 1000, CASES_PER_TOPOLOGY))}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shape", sorted(STARTS))
def test_random_faults_are_found_and_none_is_misnamed(
    shape: str, installation97: Installation, installation56: Installation
) -> None:
    assert installation97.version > installation56.version
    first = STARTS[shape]
    evaluated = list(evaluated_cases(SEED, range(first, first + CASES)))
    assert [report_of_case(each) for each in evaluated if each.disagreements] == []
    assert sum(bool(each.not_produced) for each in evaluated) <= CASES // 4

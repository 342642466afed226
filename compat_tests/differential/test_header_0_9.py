"""The header of 0-9 gives what that of 0-9-1 gives, in every case: so it is on RabbitMQ 4.0.5 and 4.3.6.

The exceptions are all that RabbitMQ refuses and 0-9 has; these cases are sent over the header of 0-9-1 there.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from compat_tests.differential.accounts import ACCOUNTS
from compat_tests.differential.cases.header_0_9 import HEADER
from compat_tests.differential.cases.malformed import WITH_FRAMES_OF_0_9
from compat_tests.differential.comparison import LOOKS, all_cases, is_special, run_special
from compat_tests.differential.operators import BrokerOperator
from compat_tests.differential.raw_client import PROTOCOL_HEADER, Address
from compat_tests.differential.script import Case, run
from fakeamqp import Broker

OF_0_9 = re.compile(
    r"chan/open-ok-bytes"  # The id with which the channel can be resumed.
    r"|frame/type-(4|5|6|7|9|10)|frame/type-7-channel-0|frame/type-4-channel-0|frame/type-5-payload"
    r"|frame/class-(20-50|20-60|70-10|80-10|100-10|110-10|120-10|40-22|60-102|10-42)"
    r"|malformed/(before-open-connection|open-connection)-unknown-frame(-1)?"
    r"|malformed/(open|closing|unopened)-channel-unknown-frame"
    r"|frame/content-weight|malformed/open-channel-publish-weight"  # A content with child contents.
)


CASES = all_cases()


def test_unlisted_cases_have_same_outcome_over_headers_0_9_and_0_9_1() -> None:
    expected = {each for each in CASES if OF_0_9.fullmatch(each)}
    listed = expected | WITH_FRAMES_OF_0_9
    with Broker(definitions=ACCOUNTS, seed=1) as broker, Broker(definitions=ACCOUNTS, seed=1) as second:

        def over(header: bytes, patience: float) -> Address:
            where = broker if header == HEADER else second
            return Address(where.host, where.port, patience, BrokerOperator(where), header)

        def outcomes(case: Case, patience: float) -> tuple[str, str]:
            return run(case, over(HEADER, patience)), run(case, over(PROTOCOL_HEADER, patience))

        found: dict[str, tuple[str, str]] = {}
        chosen = list(CASES.values())
        for patience, at_once in LOOKS:
            with ThreadPoolExecutor(4 * at_once) as pool, ThreadPoolExecutor(2) as both:
                together = [case for case in chosen if not is_special(case)]
                looks = pool.map(lambda case, patience=patience: outcomes(case, patience), together)
                found |= zip((case.id for case in together), looks, strict=True)
                special = [case for case in chosen if is_special(case)]
                one, other = both.map(
                    lambda address, special=special: run_special(special, address, pool),
                    (over(HEADER, patience), over(PROTOCOL_HEADER, patience)),
                )
                found |= {case.id: (one[case.id], other[case.id]) for case in special}
            chosen = [case for case in chosen if len(set(found[case.id])) > 1 and case.id not in listed]
    assert not {case.id: found[case.id] for case in chosen}
    assert not {case_id for case_id in expected if len(set(found[case_id])) == 1}

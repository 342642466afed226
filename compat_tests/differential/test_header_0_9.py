"""The header of 0-9 gives what that of 0-9-1 gives, in every case: so it is on RabbitMQ 4.0.5 and 4.3.6.

The exceptions are all that RabbitMQ refuses and 0-9 has; these cases are sent over the header of 0-9-1 there.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from compat_tests.differential.accounts import ACCOUNTS
from compat_tests.differential.cases.header_0_9 import HEADER
from compat_tests.differential.cases.malformed import WITH_FRAMES_OF_0_9
from compat_tests.differential.comparison import AT_ONCE, all_cases, is_special, run_special
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


def test_every_case_is_the_same_over_both_headers() -> None:
    expected = {each for each in CASES if OF_0_9.fullmatch(each)}
    with Broker(definitions=ACCOUNTS, seed=1) as broker, Broker(definitions=ACCOUNTS, seed=1) as second:

        def over(header: bytes, patience: float = 1.0) -> Address:
            where = broker if header == HEADER else second
            return Address(where.host, where.port, patience, BrokerOperator(where), header)

        def differs(case: Case) -> bool:
            # A second look, with more patience: the machine may just have been slow.
            looks = (1.0,) if case.id in expected | WITH_FRAMES_OF_0_9 else (1.0, 4.0)
            return all(
                run(case, over(HEADER, patience)) != run(case, over(PROTOCOL_HEADER, patience))
                for patience in looks
            )

        together = [case for case in CASES.values() if not is_special(case)]
        special = [case for case in CASES.values() if is_special(case)]
        with ThreadPoolExecutor(4 * AT_ONCE) as pool, ThreadPoolExecutor(2) as both:
            found = {
                case.id for case, other in zip(together, pool.map(differs, together), strict=True) if other
            }
            one, other = both.map(
                lambda header: run_special(special, over(header), pool), (HEADER, PROTOCOL_HEADER)
            )
        found |= {case.id for case in special if one[case.id] != other[case.id] and differs(case)}
    assert found - WITH_FRAMES_OF_0_9 == expected

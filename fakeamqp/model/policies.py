"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

Setting or clearing a policy matches all queues and exchanges again, and applies the options of those whose
policies changed. New ones are matched when they are declared. (RabbitMQ: documented.)

Where several set the same option, policy and operator policy first become one definition, key by key
(`effective_definition`). Then, option by option, that definition meets the arguments
(`effective_options`). The rows of `arguments` say which value wins, because RabbitMQ has no single rule: the
stricter value mostly wins, but not always. (RabbitMQ: documented in part, the rest measured.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.arguments.exchange_arguments import ANY_TYPE, EXCHANGE_ARGUMENTS, ExchangeOptions
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS, mirroring_problem
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS, QueueOptions, argument_of
from fakeamqp.model.arguments.rows import argument_wins
from fakeamqp.model.erlang import pairs_term, term
from fakeamqp.model.patterns import InvalidPattern, compiled

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.patterns.matching import Program
    from fakeamqp.model.personality import DeprecatedFeatures, Personality
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost

# --- runtime parameters ------------------------------------------------------------------------------
#
# An operator sets policies and limits by name. RabbitMQ checks such a parameter field by field and reports
# all problems in one text; `checked` does the same.

Check: TypeAlias = "Callable[[str, Any], str | None]"
"""Takes the name of a field and its value, and returns a description of the problem, or None."""


class ParameterError(FakeAMQPError):
    """A policy or a limit cannot be set, or the one to clear does not exist.

    `reason` is RabbitMQ's text, without fakeamqp's hints.
    """

    __module__ = "fakeamqp.errors"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def checked(
    name: str, value: Any, fields: Mapping[str, tuple[Check, bool]]
) -> tuple[list[str], dict[str, Any]]:
    """Check a parameter's value, which should be a mapping; `name` is for RabbitMQ's texts.

    `fields` has for each field its check, and whether it is mandatory. Returns the problems, in the order
    that RabbitMQ reports them, and the value's fields.
    """
    if not isinstance(value, Mapping):
        return [f"{name} not a list {term(value)}"], {}
    wrong: list[str] = []
    for key, (check, mandatory) in fields.items():
        if key in value:
            problem = check(key, value[key])
        else:
            problem = f'Key "{key}" not found in {name}' if mandatory else None
        if problem is not None:
            wrong.insert(0, problem)
    others = [(key, value[key]) for key in sorted(value) if key not in fields]
    if others:
        wrong.insert(0, f"Unrecognised terms {pairs_term(others)} in {name}")
    return wrong, dict(value)


def mapping(value: Any) -> Any:
    """A mapping from a list of pairs, the form that some versions of RabbitMQ export (measured).

    Any other value is returned as it is.
    """
    pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return {str(name): item for name, item in value} if pairs else value


def failed(wrong: Iterable[str]) -> str:
    """RabbitMQ's text that reports all problems."""
    return "Validation failed\n\n" + "".join(f"{each}\n" for each in wrong)


def whole_number(name: str, value: Any) -> str | None:
    """Check that a field holds a whole number."""
    return None if type(value) is int else f"{name} should be a number, actually was {term(value)}"


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a text about an unknown name: `; did you mean 'x'?`, or the known names."""
    names = list(known)
    near = nearest(name, names)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(names))}"


# --- one policy --------------------------------------------------------------------------------------

APPLY_TO = ("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all")
"""The kinds of entities that policies apply to."""

_QUEUES = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}

_RETRY_TYPE: Final = argument_of("delayed_retry_type").removeprefix("x-")
_RETRY_MIN: Final = argument_of("delayed_retry_min").removeprefix("x-")
_RETRY_MAX: Final = argument_of("delayed_retry_max").removeprefix("x-")


Options = TypeVar("Options", QueueOptions, ExchangeOptions)


class PolicyError(ParameterError):
    """A policy has an illegal field, or the policy to clear does not exist."""

    __module__ = "fakeamqp.errors"


@dataclass(frozen=True)
class Policy:
    """Options for the queues and exchanges whose name contains a match of the pattern.

    `definition` has keys and values as in RabbitMQ; `apply_to` is one of `APPLY_TO`. Of all matching policies
    only the one with the highest priority applies.
    """

    name: str
    pattern: str
    definition: Mapping[str, Any] = field(hash=False)
    apply_to: str = "all"
    priority: float = 0

    def applies_to(self, kind: str) -> bool:
        """Whether the policy is for queues of this type, or for exchanges if `kind` is "exchange"."""
        if kind == "exchange":
            return self.apply_to in ("all", "exchanges")
        return self.apply_to in ("all", "queues", _QUEUES.get(kind, ""))

    def value(self) -> dict[str, Any]:
        """The policy without its name, as RabbitMQ stores and exports it."""
        return {
            "pattern": self.pattern,
            "apply-to": self.apply_to,
            "priority": self.priority,
            "definition": dict(self.definition),
        }


def read_policy(
    personality: Personality,
    features: DeprecatedFeatures,
    name: str,
    value: Mapping[str, Any],
    *,
    operator: bool = False,
) -> Policy:
    """Read a policy from its fields as in RabbitMQ: pattern, definition, priority and apply-to.

    A field that is missing or illegal is a PolicyError, which says which, and names near matches.
    """
    hints = ""

    def check_definition(_: str, definition: Any) -> str | None:
        nonlocal hints
        problem, near = _definition_problem(personality, features, definition, operator=operator)
        hints = near if problem else hints
        return problem or None

    def check_apply_to(_: str, apply_to: Any) -> str | None:
        nonlocal hints
        if apply_to in APPLY_TO:
            return None
        hints = hint(str(apply_to), APPLY_TO)
        return (
            f"apply-to '{apply_to}' unrecognised; should be one of: 'queues', 'classic_queues',  "
            "'quorum_queues', 'streams', 'exchanges', or 'all'"
        )

    fields: dict[str, tuple[Check, bool]] = {
        "priority": (_check_priority, True),
        "pattern": (lambda _, pattern: _pattern_problem(personality, pattern), True),
        "apply-to": (check_apply_to, False),
        "definition": (check_definition, True),
    }
    wrong, found = checked(name, value, fields)
    if wrong:
        if isinstance(value, Mapping):
            for key in sorted(set(value) - set(fields)):
                hints = hint(key, fields)
        kind = "operator policy" if operator else "policy"
        raise PolicyError(f"{kind} {name!r}: {'; '.join(wrong)}{hints}", failed(wrong))
    return Policy(
        name, found["pattern"], dict(found["definition"]), found.get("apply-to", "all"), found["priority"]
    )


def _check_priority(_: str, priority: Any) -> str | None:
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        return None
    return f"priority should be a number, actually was {term(priority)}"


def _pattern_problem(personality: Personality, pattern: Any) -> str | None:
    if not isinstance(pattern, str):
        shown = "undefined" if pattern is None else term(pattern)
        return f"pattern should be a binary but was {shown}"
    longest = personality.longest_pattern
    if longest and len(pattern.encode("utf-8", "surrogateescape")) > longest:
        return f"pattern must not exceed {longest} bytes"
    try:
        compiled(pattern)
    except InvalidPattern as error:
        return f'pattern should be regular expression but is invalid: {{"{error.problem}",{error.place}}}'
    return None


def _definition_problem(
    personality: Personality, features: DeprecatedFeatures, definition: Any, *, operator: bool
) -> tuple[str, str]:
    """What is wrong with a definition, "" if nothing is: RabbitMQ's text and a hint, which may be empty.

    Values come before unknown keys, and only the first bad value is named (RabbitMQ: measured).
    """
    if isinstance(definition, list):
        return f"definition must be a dictionary: {term(definition)}", ""
    if not isinstance(definition, Mapping):
        shown = term(definition)
        text = f"parse error while reading policy definition: {shown}. Validator: policy_validator."
        return text, " A definition must be an object."
    if not definition:
        return "no policy provided", ""
    known = personality.operator_policy_keys if operator else personality.policy_keys
    for key in sorted(definition):
        problem = POLICY_KEYS[key].check(personality, features, definition[key]) if key in known else None
        if problem is not None:
            return problem, ""
    problem = mirroring_problem(features, known, definition) or _delayed_retry_problem(known, definition)
    if problem is not None:
        return problem, ""
    unknown = [(key, definition[key]) for key in sorted(definition) if key not in known]
    if not unknown:
        return "", ""
    text = f"{pairs_term(unknown)} are not recognised policy settings"
    if operator and unknown[0][0] in personality.policy_keys:
        return text, f"; an operator policy cannot set {unknown[0][0]!r}, a policy can"
    return text, hint(unknown[0][0], known)


def _delayed_retry_problem(known: Collection[str], definition: Mapping[str, Any]) -> str | None:
    """Keys of delayed retries are checked together (RabbitMQ: since 4.3)."""
    if _RETRY_TYPE not in known:
        return None
    kind = definition.get(_RETRY_TYPE, "disabled")
    least = definition.get(_RETRY_MIN)
    most = definition.get(_RETRY_MAX)
    if kind != "disabled" and least is None:
        return f"{_RETRY_MIN} is required when {_RETRY_TYPE} is {kind}"
    if least is not None and most is not None and most < least:
        return f"{_RETRY_MAX} ({most}) must not be smaller than {_RETRY_MIN} ({least})"
    return None


# --- options in force --------------------------------------------------------------------------------


def effective_definition(policy: Policy | None, operator: Policy | None) -> dict[str, Any]:
    """What a policy and an operator policy set together, sorted by key."""
    ours = {} if policy is None else policy.definition
    theirs = {} if operator is None else operator.definition
    merged = {}
    for key in sorted({*ours, *theirs}):
        if key in ours and key in theirs:
            merge = POLICY_KEYS[key].operator_merge if key in POLICY_KEYS else argument_wins
            merged[key] = merge(ours[key], theirs[key])
        else:
            merged[key] = ours.get(key, theirs.get(key))
    return merged


def effective_options(
    personality: Personality,
    kind: str,
    declared: Options,
    arguments: Mapping[str, Any],
    definition: Mapping[str, Any],
) -> Options:
    """The options in force for a queue, or for an exchange if `kind` is `ANY_TYPE`.

    `declared` is what the arguments of the declaration ask for, `definition` the `effective_definition`.
    """
    known = personality.queue_arguments.get(kind, arguments)
    changes: dict[str, Any] = {}
    for row in EXCHANGE_ARGUMENTS if kind == ANY_TYPE else QUEUE_ARGUMENTS:
        key = row.policy
        if key is None or key.merge is None or row.key not in definition or kind not in row.types:
            continue
        wanted = key.read(definition[row.key], kind)
        asked = getattr(declared, row.option) if row.name in arguments and row.name in known else None
        if asked is not None and not key.overrides(personality, kind):
            wanted = key.merges.get(kind, key.merge)(wanted, asked)
        changes[row.option] = wanted
    return replace(declared, **changes) if changes else declared


class Policies:
    """Policies and operator policies by name, in the order they were first set."""

    __slots__ = ("_ranked", "_virtual_host", "operator_policies", "policies")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self.policies: dict[str, Policy] = {}
        self.operator_policies: dict[str, Policy] = {}
        self._ranked: dict[tuple[str, bool], list[tuple[Program, Policy]]] = {}
        """By type of queue, or "exchange": policies or operator policies; the first that fits holds."""

    def setting(self, name: str, value: Mapping[str, Any], *, operator: bool = False) -> Iterator[None]:
        """The steps of setting or replacing a policy; each gives one queue or exchange its policies.

        `value` has the fields pattern, definition, priority and apply-to, as in RabbitMQ. Raises PolicyError.
        """
        state = self._virtual_host.state
        policy = read_policy(state.personality, state.features, name, value, operator=operator)
        self._kept(operator)[name] = policy
        yield from self._matching()

    def clearing(self, name: str, *, operator: bool = False) -> Iterator[None]:
        """The steps of clearing a policy. Raises PolicyError if no policy has this name."""
        kept = self._kept(operator)
        if name not in kept:
            kind = "operator policy" if operator else "policy"
            where = self._virtual_host.name
            near = hint(name, kept) if kept else "; there are none"
            raise PolicyError(
                f"there is no {kind} {name!r} in virtual host {where!r}{near}", "Parameter does not exist"
            )
        del kept[name]
        yield from self._matching()

    def _kept(self, operator: bool) -> dict[str, Policy]:
        return self.operator_policies if operator else self.policies

    def _matching(self) -> Iterator[None]:
        """The steps of matching all queues and exchanges again. Clients may declare and delete meanwhile."""
        self._ranked.clear()
        virtual_host = self._virtual_host
        for exchange in list(virtual_host.exchanges.values()):
            if virtual_host.exchanges.get(exchange.name) is exchange:
                self.adopt_exchange(exchange)
                yield
        for queue in list(virtual_host.queues.values()):
            # Dead letters of one queue may cause the deletion of another one in the list.
            if not queue.deleted:
                self.adopt_queue(queue)
                yield

    def _best(self, name: str, kind: str, *, operator: bool = False) -> Policy | None:
        """The policy with the highest priority; of several, the first by name (RabbitMQ: any of them).

        `kind` is the type of the queue, or "exchange".
        """
        policies = self._kept(operator)
        if not policies:
            return None
        ranked = self._ranked.get((kind, operator))
        if ranked is None:
            foreign = self._virtual_host.state.personality.foreign_policy_keys
            skipped = frozenset() if kind == "exchange" else frozenset(foreign[kind])
            ranked = self._ranked[kind, operator] = [
                (compiled(each.pattern), each)
                for each in sorted(policies.values(), key=lambda each: (-each.priority, each.name))
                if each.applies_to(kind) and skipped.isdisjoint(each.definition)
            ]
        return next((policy for program, policy in ranked if program.search(name)), None)

    def adopt_queue(self, queue: Queue) -> None:
        """Match a queue, and apply its options if its policies changed."""
        kind = queue.type_name
        if self._finds_others(queue, kind):
            queue.apply(self._options(kind, queue, queue.declared))

    def adopt_exchange(self, exchange: Exchange) -> None:
        """Match an exchange, and apply its options if its policies changed. The default one has no policy."""
        if exchange.name and self._finds_others(exchange, "exchange"):
            exchange.apply(self._options(ANY_TYPE, exchange, exchange.declared))
            self._virtual_host.routing.invalidate()

    def _finds_others(self, entity: Queue | Exchange, kind: str) -> bool:
        """Match a queue or exchange again; whether its policies are other ones than before."""
        policy = self._best(entity.name, kind)
        operator = self._best(entity.name, kind, operator=True)
        if policy is None:
            self._virtual_host.state.resets.miss_policies(self._virtual_host.name, kind, entity.name)
        if (policy, operator) == (entity.policy, entity.operator_policy):
            return False
        entity.policy, entity.operator_policy = policy, operator
        return True

    def _options(self, kind: str, entity: Queue | Exchange, declared: Options) -> Options:
        definition = effective_definition(entity.policy, entity.operator_policy)
        personality = self._virtual_host.state.personality
        return effective_options(personality, kind, declared, entity.arguments, definition)

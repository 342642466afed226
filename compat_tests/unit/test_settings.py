"""The types of keyword arguments name exactly what the functions take."""

from __future__ import annotations

import inspect
from dataclasses import fields

from compat_tests.tools.personalities import KEYWORDS, keywords
from fakeamqp import Broker, Proxy
from fakeamqp.model.messages.message import MessageProperties, PlainProperties
from fakeamqp.settings import BrokerArguments, ProxyArguments


def test_keyword_types_of_choices_are_generated_from_rows():
    written = KEYWORDS.read_text()
    assert written == keywords(written), "run: python -m compat_tests.tools.personalities"


def test_broker_arguments_type_equals_parameters_of_broker():
    taken = inspect.signature(Broker).parameters
    arguments = {
        name: _plain(each.annotation) for name, each in taken.items() if each.kind is not each.VAR_KEYWORD
    }
    assert _types(BrokerArguments) == arguments


def test_proxy_arguments_type_equals_parameters_of_proxy():
    taken = inspect.signature(Proxy).parameters
    arguments = {name: _plain(each.annotation) for name, each in taken.items() if name != "to"}
    assert _types(ProxyArguments) == arguments


def test_message_properties_type_equals_plain_properties_without_headers():
    properties = {
        field.name: _plain(field.type) for field in fields(PlainProperties) if field.name != "headers"
    }
    assert _types(MessageProperties) == properties


def _types(kind: type) -> dict[str, str]:
    return {name: _plain(each) for name, each in inspect.get_annotations(kind).items()}


def _plain(annotation: object) -> str:
    """An annotation as written; a `TypedDict` wraps the text of its own."""
    return getattr(annotation, "__forward_arg__", annotation)

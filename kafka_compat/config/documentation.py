"""Documentation of the settings, from the rows of their tables. Imported when a client requests it."""

from functools import cache

from kafka_compat.config.broker_table import BROKER_TABLE, DYNAMIC_ONLY_TABLE
from kafka_compat.config.group import group_keys
from kafka_compat.config.group_table import GROUP_TABLE
from kafka_compat.config.keys import ConfigKey, broker_keys, dynamic_only_keys, topic_keys
from kafka_compat.config.own_settings import OWN_TABLE
from kafka_compat.config.topic_table import SERVER_SYNONYMS, TOPIC_TABLE

_WITHOUT_EFFECT = {
    "stored": "Accepted, stored and reported, but without effect in this broker.",
    "unneeded": "Accepted for compatibility: this broker has nothing for it to tune.",
}


@cache
def _sentences() -> dict[str, str]:
    rows = f"{BROKER_TABLE}{DYNAMIC_ONLY_TABLE}{OWN_TABLE}{TOPIC_TABLE}{GROUP_TABLE}".split("\n")
    found = {row.partition(" ")[0]: row.partition(" # ")[2] for row in rows if " # " in row}
    for topic_setting, synonyms in SERVER_SYNONYMS.items():
        if topic_setting in found:
            text = f"{found[topic_setting]} Topics override it with {topic_setting}."
            found = dict.fromkeys(synonyms, text) | found
    return found


def about(name: str) -> str | None:
    """Return the documentation of a setting, or None if it has none."""
    return _sentences().get(name)


def document(name: str) -> str | None:
    """Return a setting's documentation, valid values and default, or None if the setting is unknown."""
    tables = (topic_keys(), broker_keys(), dynamic_only_keys(), group_keys())
    key = next((table[name] for table in tables if name in table), None)
    if key is None:
        return None
    sentence = about(name) or _WITHOUT_EFFECT.get(key.effect)
    return f"{sentence} {_values(key)}" if sentence else _values(key)


def _values(key: ConfigKey) -> str:
    text = key.expected.partition(", for example")[0].removeprefix("expected ")
    return f"{text[0].upper()}{text[1:]}; default: {key.default if key.default is not None else 'none'}."

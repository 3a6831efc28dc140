"""Record rates, calculated from end offsets at two points in time."""

from __future__ import annotations

from kafka_compat.page.observed import Rates


def test_rates_cover_the_last_minute() -> None:
    rates = Rates()
    rates.add(0.0, {"t": (2, 100)})
    assert rates.of("t") is None
    rates.add(5.0, {"t": (2, 150), "new": (1, 7)})
    assert rates.of("t") == 10 and rates.of("new") is None and rates.of("none") is None
    for number in range(2, 40):
        rates.add(5.0 * number, {"t": (2, 150), "new": (1, 7)})
    assert rates.of("t") == 0 and rates.of("new") == 0


def test_moved_leaders_and_recreated_topics_do_not_distort_rates() -> None:
    rates = Rates()
    rates.add(0.0, {"moved": (2, 100), "anew": (1, 100)})
    rates.add(5.0, {"moved": (1, 60), "anew": (1, 5)})
    assert rates.of("moved") is None and rates.of("anew") is None
    rates.add(10.0, {"moved": (1, 70), "anew": (1, 15)})
    assert rates.of("moved") == 2 and rates.of("anew") == 2
    rates.forget()
    assert rates.of("moved") is None
